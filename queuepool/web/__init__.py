"""The dashboard, ``queuepool web``: pools, queues and jobs of a configuration in the browser.

from queuepool.web import dashboard

app.mount("/queuepool", dashboard("queuepool.ini", access=lambda scope: "viewer"))
"""

from __future__ import annotations

from queuepool.web.dashboard import dashboard as dashboard
from queuepool.web.visitors import Visitor as Visitor
from queuepool.web.wsgi import WsgiDashboard as WsgiDashboard
