"""What Python 3.13 and later require of certificates (``ssl.VERIFY_X509_STRICT``); many private CAs do not comply."""

from __future__ import annotations

import re

#: OpenSSL's messages for what it checks only in strict mode
_STRICT = re.compile(
    "(Authority|Subject) Key Identifier|CA cert does not include key usage|Basic Constraints of CA cert not marked|"
    "Path length (invalid|given)|Key usage keyCertSign invalid|(Issuer|Subject) name empty|requires at least X509v3|"
    "Empty Subject Alternative Name"
)


def explained(text: str) -> str:
    """A store's error text, with the remedy if it refuses such a certificate."""
    if not _STRICT.search(text):
        return text
    return f"{text}: Python 3.13 and later require it; reissue the certificate as docs/security.md shows under TLS"
