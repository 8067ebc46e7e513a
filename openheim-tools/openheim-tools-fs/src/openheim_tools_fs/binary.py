"""What kind of file it is that is no text, told by its first bytes, and what may help with it."""

from __future__ import annotations

__all__ = ("described",)

_UNPACK = "list or unpack it with a program for archives"
_CONVERT = "convert it to text with a program that reads this kind of file"
_PICTURE = "convert it to PNG first"

#: First bytes, offset of them, what they say, and advice.
_SIGNATURES: tuple[tuple[bytes, int, str, str], ...] = (
    (b"%PDF-", 0, "PDF document", "extract its text, for instance with pdftotext"),
    (b"PK\x03\x04", 0, "ZIP archive, or a document in one such as .docx, .xlsx or .jar", _UNPACK),
    (b"\x1f\x8b", 0, "gzip file", "unpack it, for instance with gzip -dc"),
    (b"BZh", 0, "bzip2 file", "unpack it, for instance with bzip2 -dc"),
    (b"\xfd7zXZ\0", 0, "xz file", "unpack it, for instance with xz -dc"),
    (b"\x28\xb5\x2f\xfd", 0, "Zstandard file", "unpack it, for instance with zstd -dc"),
    (b"7z\xbc\xaf\x27\x1c", 0, "7z archive", _UNPACK),
    (b"Rar!\x1a\x07", 0, "RAR archive", _UNPACK),
    (b"ustar", 257, "tar archive", _UNPACK),
    (b"SQLite format 3\0", 0, "SQLite database", "query it, for instance with sqlite3"),
    (b"\x7fELF", 0, "compiled program or library (ELF)", "read its sources instead"),
    (b"MZ", 0, "compiled program or library (Windows)", "read its sources instead"),
    (b"\xcf\xfa\xed\xfe", 0, "compiled program or library (Mach-O)", "read its sources instead"),
    (b"\xca\xfe\xba\xbe", 0, "compiled Java class or Mach-O program", "read its sources instead"),
    (b"\0asm", 0, "compiled WebAssembly module", "read its sources instead"),
    (b"PAR1", 0, "Parquet table", _CONVERT),
    (b"\x89HDF\r\n\x1a\n", 0, "HDF5 file", _CONVERT),
    (b"\x93NUMPY", 0, "NumPy array", _CONVERT),
    (b"GGUF", 0, "model file (GGUF)", ""),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0, "old Office document", _CONVERT),
    (b"\x89PNG\r\n\x1a\n", 0, "PNG image", ""),
    (b"\xff\xd8\xff", 0, "JPEG image", ""),
    (b"GIF8", 0, "GIF image", ""),
    (b"WEBP", 8, "WebP image", ""),
    (b"BM", 0, "BMP image", _PICTURE),
    (b"II*\0", 0, "TIFF image", _PICTURE),
    (b"MM\0*", 0, "TIFF image", _PICTURE),
    (b"ftypheic", 4, "HEIC image", _PICTURE),
    (b"ftypavif", 4, "AVIF image", _PICTURE),
    (b"\0\0\x01\0", 0, "icon", _PICTURE),
    (b"ftyp", 4, "video or audio file (MP4)", ""),
    (b"\x1aE\xdf\xa3", 0, "video or audio file (Matroska)", ""),
    (b"OggS", 0, "video or audio file (Ogg)", ""),
    (b"ID3", 0, "audio file (MP3)", ""),
    (b"fLaC", 0, "audio file (FLAC)", ""),
    (b"WAVE", 8, "audio file (WAV)", ""),
    (b"wOF2", 0, "font", ""),
    (b"wOFF", 0, "font", ""),
    (b"\0\x01\0\0\0", 0, "font", ""),
)


def described(sample: bytes) -> tuple[str, str]:
    """What a file that begins with ``sample`` is, and what to do with it; ``""`` where that is not known."""
    for signature, offset, kind, advice in _SIGNATURES:
        if sample.startswith(signature, offset):
            return kind, advice
    return "", ""
