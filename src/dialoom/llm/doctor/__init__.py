"""What a model server can really do, found out by asking it."""

from dialoom.llm.doctor.diagnose import DoctorLimits as DoctorLimits
from dialoom.llm.doctor.diagnose import diagnose as diagnose
from dialoom.llm.doctor.report import Finding as Finding
from dialoom.llm.doctor.report import Report as Report
