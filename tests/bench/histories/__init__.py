"""Long histories for measurements and tests: their events (``story``), written in one stream (``fast_import``)."""
