"""`python -m no8s_operator.host` is `no8s-plugin-host`."""

import sys

from no8s_operator.host.command import main

sys.exit(main())
