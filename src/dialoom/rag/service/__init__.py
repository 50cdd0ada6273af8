"""Knowledge as a process: questions and documents come in as lines of JSON, answers go out the same way."""

from dialoom.rag.service.access import ServiceAccess as ServiceAccess
from dialoom.rag.service.access import access_from as access_from
from dialoom.rag.service.pipes import serve as serve
from dialoom.rag.service.requests import Request as Request
from dialoom.rag.service.requests import RequestError as RequestError
from dialoom.rag.service.requests import Response as Response
from dialoom.rag.service.service import RagService as RagService
from dialoom.rag.service.settings import ServiceSettings as ServiceSettings
