"""The smallest PDF files, written by hand: tests that only need one ask no package for it."""


def small_pdf(*pages: str) -> bytes:
    """Return a file with a line of ASCII on each page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    bodies = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}/MediaBox[0 0 612 792]>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        contents = f"/Contents {5 + 2 * number} 0 R"
        bodies.append(f"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 3 0 R>>>>{contents}>>")
        bodies.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
    written = "%PDF-1.4\n"
    places = ""
    for number, body in enumerate(bodies, start=1):
        places += f"{len(written):010} 00000 n \n"
        written += f"{number} 0 obj\n{body}\nendobj\n"
    size = len(bodies) + 1
    table = f"xref\n0 {size}\n0000000000 65535 f \n{places}trailer\n<</Root 1 0 R/Size {size}>>\n"
    return f"{written}{table}startxref\n{len(written)}\n%%EOF\n".encode()
