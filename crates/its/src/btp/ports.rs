//! Well-known ports, TS 103 248 V2.1.1, table 1 (referenced by EN 302 636-5-1).

/// Cooperative awareness (CAM).
pub const CAM: u16 = 2001;
/// Decentralised environmental notification (DENM).
pub const DENM: u16 = 2002;
/// Road and lane topology (MAPEM).
pub const MAPEM: u16 = 2003;
/// Traffic light manoeuvre (SPATEM).
pub const SPATEM: u16 = 2004;
/// Service announcement (SAEM).
pub const SAEM: u16 = 2005;
/// Infrastructure to vehicle information (IVIM).
pub const IVIM: u16 = 2006;
/// Traffic light control, request (SREM).
pub const SREM: u16 = 2007;
/// Traffic light control, status (SSEM).
pub const SSEM: u16 = 2008;
/// Collective perception (CPM).
pub const CPM: u16 = 2009;
/// Charging spots (EVCSN POI).
pub const EVCSN_POI: u16 = 2010;
/// Tyre pressure gauges (TPG).
pub const TPG: u16 = 2011;
/// Charging spot reservation (EV-RSR).
pub const EV_RSR: u16 = 2012;
/// GNSS positioning correction (RTCMEM).
pub const RTCMEM: u16 = 2013;
/// Certificate trust list (CTLM).
pub const CTLM: u16 = 2014;
/// Certificate revocation list (CRLM).
pub const CRLM: u16 = 2015;
/// Enrolment and authorisation requests.
pub const CERTIFICATE_REQUEST: u16 = 2016;
/// Multimedia content dissemination (MCDM).
pub const MCDM: u16 = 2017;
/// Vulnerable road user awareness (VAM).
pub const VAM: u16 = 2018;
/// Interference management zones (IMZM).
pub const IMZM: u16 = 2019;

/// Returns `true` if the table assigns a message to the port.
#[must_use]
pub const fn is_well_known(port: u16) -> bool {
    matches!(port, CAM..=IMZM)
}
