"""The pages: each returns facts, ready for JSON, which its template shows and its twin under /api/v1 answers with."""
