// Renews what changes on a page in the foreground. Everything works without it.
"use strict";

(() => {
  const seconds = Number(document.body.dataset.refresh);
  const state = document.getElementById("live-state");
  let timer = 0;
  let etag = "";
  let isSent = false;

  // Times in the reader's zone; the title keeps UTC.
  function localize(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) {
        const day = at.toDateString() === new Date().toDateString() ? {} : { year: "numeric", month: "short", day: "numeric" };
        time.textContent = at.toLocaleString(undefined, { ...day, hour: "2-digit", minute: "2-digit", second: "2-digit" });
      }
    }
  }

  // What a person is at must not change under the fingers.
  function isInUse(part) {
    const at = document.activeElement;
    const isTyping = part.contains(at) && /^(INPUT|SELECT|TEXTAREA|BUTTON|SUMMARY)$/.test(at.tagName);
    const isAsked = part.querySelector(".sure[open]"); // whether to go through with it
    const selection = document.getSelection();
    const isMarking = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
    return isTyping || isAsked || isMarking;
  }

  // A link that has the focus keeps it, also if others lead to the same page.
  function replace(part, fresh) {
    const at = document.activeElement;
    const href = part.contains(at) && at.getAttribute("href");
    const alike = () => [...part.querySelectorAll("a")].filter((link) => link.getAttribute("href") === href);
    const place = alike().indexOf(at);
    part.replaceChildren(...fresh.childNodes);
    part.toggleAttribute("data-over", fresh.hasAttribute("data-over")); // nothing of it changes any more
    localize(part);
    const again = href && (alike()[place] || alike()[0]);
    if (again) again.focus({ preventScroll: true });
  }

  function renew(text) {
    const page = new DOMParser().parseFromString(text, "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = page.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
      if (fresh && !isInUse(part)) replace(part, fresh);
    }
  }

  function tell(words) {
    state.hidden = !words;
    state.textContent = words;
  }

  async function poll() {
    try {
      const headers = etag ? { "If-None-Match": etag } : {};
      // Of what the page shows only that which is renewed: lists would be read again for every tab.
      const address = new URL(location.href);
      address.searchParams.set("part", "live");
      const answer = await fetch(address, { headers, cache: "no-store", redirect: "error" });
      // A job of which nothing is known any more is told so.
      if ((answer.status === 200 || answer.status === 404) && !isSent) {
        etag = answer.headers.get("ETag") || "";
        renew(await answer.text());
      }
      tell(answer.status === 401 ? "logged out ·" : answer.status >= 500 ? "not renewed ·" : "");
    } catch {
      tell("no answer ·");
    }
    plan();
  }

  // One request at a time, and none while nobody looks, or while a form is on its way: a second click must not meet
  // a new one.
  function plan() {
    clearTimeout(timer);
    if (!isSent && seconds > 0 && !document.hidden && document.querySelector("[data-live]:not([data-over])")) timer = setTimeout(poll, seconds * 1000);
  }

  // "/" goes to the search, or to the field for ids that every page has; "g" and a letter to a page.
  let isGoing = false;
  function press(event) {
    const at = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName)) return;
    const links = [...document.querySelectorAll("header nav a")];
    const link = isGoing && links.find((one) => one.textContent.toLowerCase().startsWith(event.key));
    isGoing = event.key === "g";
    if (link) link.click();
    if (event.key === "/") {
      const search = document.querySelector(".filters input:not([type=hidden])") || document.querySelector(".find input");
      event.preventDefault();
      search.focus();
    }
  }

  // The box in the head of a table chooses all rows.
  function choose(event) {
    if (!event.target.matches("[data-all]")) return;
    for (const box of event.target.closest("table").querySelectorAll("tbody input[type=checkbox]")) box.checked = event.target.checked;
  }

  // A form is sent once, and the server sees to that, too. An answer takes 20 s at most, or somebody has broken it off.
  function send(event) {
    if (event.target.method !== "post") return;
    if (isSent) event.preventDefault();
    else setTimeout(goOn, 30000);
    isSent = true;
    clearTimeout(timer);
  }

  function goOn() {
    isSent = false;
    plan();
  }

  localize(document);
  document.addEventListener("visibilitychange", plan);
  document.addEventListener("keydown", press);
  document.addEventListener("change", choose);
  document.addEventListener("submit", send);
  window.addEventListener("pageshow", (event) => event.persisted && goOn()); // back from the page after it
  plan();
})();
