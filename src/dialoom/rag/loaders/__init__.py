"""Files become documents: one loader per format, one walk over folders."""

from dialoom.rag.loaders.load import load_file as load_file
from dialoom.rag.loaders.loader import DocumentLoader as DocumentLoader
from dialoom.rag.loaders.loader import Loaded as Loaded
from dialoom.rag.loaders.loader import LoadOptions as LoadOptions
from dialoom.rag.loaders.loader import Source as Source
from dialoom.rag.loaders.page import HtmlLoader as HtmlLoader
from dialoom.rag.loaders.pdf import PdfLoader as PdfLoader
from dialoom.rag.loaders.url import BlockedUrlError as BlockedUrlError
from dialoom.rag.loaders.url import UrlLoader as UrlLoader
from dialoom.rag.loaders.walk import FoundFile as FoundFile
from dialoom.rag.loaders.walk import LoadFailure as LoadFailure
from dialoom.rag.loaders.walk import Skipped as Skipped
from dialoom.rag.loaders.walk import iter_documents as iter_documents
from dialoom.rag.loaders.walk import load_document as load_document
from dialoom.rag.loaders.walk import walk_files as walk_files
from dialoom.rag.loaders.word import DocxLoader as DocxLoader
