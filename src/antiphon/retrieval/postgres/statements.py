"""The statements of the index in a PostgreSQL database. Of copies one passage is `counted`: it has postings and a vector."""

ADD_SOURCE = """INSERT INTO antiphon.sources (path, size, modified_ns, digest, words, overlap, encoding, text_field, led_to)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id"""
SOURCES = """SELECT path, size, modified_ns, digest, words, overlap, passages, encoding, text_field, led_to
    FROM antiphon.sources ORDER BY path"""
FILL_SOURCE = "UPDATE antiphon.sources SET passages = %s WHERE id = %s"
GROW_SOURCE = "UPDATE antiphon.sources SET counted = counted + %s, all_words = all_words + %s WHERE id = %s"
GROW = "UPDATE antiphon.library SET passages = passages + %s, words = words + %s"
SHRINK = """UPDATE antiphon.library SET passages = passages - %s, words = words - %s, vectors = vectors - %s,
    deleted = pg_current_xact_id()"""
NEW = """SELECT DISTINCT ON (digest) id, title, text FROM antiphon.passages AS new WHERE id = ANY(%s)
    AND NOT EXISTS (SELECT 1 FROM antiphon.passages AS old WHERE old.digest = new.digest AND old.counted) ORDER BY digest, id"""
NEXT = """SELECT passages.id, source, title, text, path FROM antiphon.passages JOIN antiphon.sources ON sources.id = source
    WHERE passages.id > %s ORDER BY passages.id LIMIT %s"""
HEIRS = """SELECT min(heir.id), gone.id, (array_agg(heir.source ORDER BY heir.id))[1] FROM antiphon.passages AS gone
    JOIN antiphon.passages AS heir ON heir.digest = gone.digest
    WHERE gone.source = %s AND gone.counted AND heir.source <> gone.source GROUP BY gone.id ORDER BY 1"""
DELETE_COPIES = """DELETE FROM antiphon.vectors USING antiphon.passages WHERE passage = passages.id AND NOT counted"""
DELETE_VECTORS = """DELETE FROM antiphon.vectors USING antiphon.passages WHERE passage = passages.id AND source = %s"""
PASSAGE_TYPES = "int4", "int4", "text", "text", "text", "int4", "int4", "text", "bytea", "bool"
COUNT_WITHOUT_VECTOR = """SELECT count(*) FROM antiphon.passages
    WHERE counted AND NOT EXISTS (SELECT 1 FROM antiphon.vectors WHERE passage = passages.id)"""
NEXT_WITHOUT_VECTOR = """SELECT id, title, text FROM antiphon.passages
    WHERE id > %s AND counted AND NOT EXISTS (SELECT 1 FROM antiphon.vectors WHERE passage = passages.id)
    ORDER BY id LIMIT %s"""
ADD_VECTOR = """INSERT INTO antiphon.vectors SELECT id, %s::real[]::halfvec FROM antiphon.passages WHERE id = %s
    ON CONFLICT DO NOTHING"""
TOTALS = "SELECT passages, words, vectors FROM antiphon.library"
ENTRIES = """SELECT word, string_agg(entries, '') FROM unnest(%s::text[], %s::text[], %s::text[]) AS asked (word, first, last)
    JOIN antiphon.postings ON term = word OR term >= first AND term < last GROUP BY word"""
NEAREST = "SELECT passage, vector::real[] FROM antiphon.vectors ORDER BY vector <#> %s::real[]::halfvec LIMIT %s"
VECTORS = "SELECT passage, vector::real[] FROM antiphon.vectors WHERE passage = ANY(%s)"
PASSAGES = """SELECT passages.id, path, title, text, unit, first, last, key
    FROM antiphon.passages JOIN antiphon.sources ON sources.id = source WHERE passages.id = ANY(%s)"""
STATS = """SELECT (SELECT count(*) FROM antiphon.sources), passages, vectors, embedder,
    (SELECT coalesce(sum(passages), 0)::bigint FROM antiphon.sources),
    (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
        WHERE relnamespace = 'antiphon'::regnamespace AND relkind = 'r')
    FROM antiphon.library"""
