"""From a run's file and its records to what people read. Nothing here prints, measures or touches an engine.

`document.document(run, records)` decides everything once: texts, ranks, marks, warnings, conclusions. The renderers
only lay it out; each is `render(run, records)`:

| module     | returns                     | for                                            |
|------------|-----------------------------|------------------------------------------------|
| `terminal` | a rich renderable           | `matrix report`                                |
| `markdown` | str, GitHub Markdown        | README, issues                                 |
| `csv_text` | str, RFC 4180               | spreadsheets: one line per cell, all raw       |
| `json_text`| str, versioned              | programs                                       |
| `picture`  | bytes, SVG                  | README; the same records give the same bytes   |

`pivot.pivots`, `flat.flats` and `table.tables` are the parts, for who wants one table alone. What they share:
`compared_run` (what is compared with what), `standings` (which record stands where), `axes` (values in words),
`measures` (figures in words).
"""
