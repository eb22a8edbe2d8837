"""What the tests share: servers, peers, proxies, pools and the applications that pools run."""
