"""A station of v2xflexstack on a network interface, for the tests of interoperation.

    flexstack_station.py INTERFACE MAC STATION_ID

It sends CAMs, VAMs and DENMs from a fixed position with the services of the package, and prints each received message as one
line of JSON: {"message": "cam", "decoded": {...}}. The first line is {"ready": true}. It ends when its standard input ends.

v2xflexstack is licensed under the AGPL by its authors. It runs in a process of its own, and the tests inspect only what it
sends and receives.
"""

import dataclasses
import json
import sys
import threading
import time

from flexstack.applications.road_hazard_signalling_service.service_access_point import DENRequest
from flexstack.btp.router import Router as BTPRouter
from flexstack.facilities.ca_basic_service.ca_basic_service import CooperativeAwarenessBasicService
from flexstack.facilities.ca_basic_service.cam_transmission_management import VehicleData
from flexstack.facilities.decentralized_environmental_notification_service.den_service import (
    DecentralizedEnvironmentalNotificationService,
)
from flexstack.facilities.vru_awareness_service.vam_transmission_management import DeviceDataProvider
from flexstack.facilities.vru_awareness_service.vru_awareness_service import VRUAwarenessService
from flexstack.geonet.gn_address import GNAddress, M, MID, ST
from flexstack.geonet.mib import MIB
from flexstack.geonet.router import Router as GNRouter
from flexstack.linklayer.raw_link_layer import RawLinkLayer
from flexstack.security.security_profiles import SecurityProfile
from flexstack.utils.static_location_service import ThreadStaticLocationService
from flexstack.utils.time_service import TimeService

LATITUDE, LONGITUDE = 45.5, 7.25
CAR, PEDESTRIAN = 5, 1
DENM_PERIOD_S = 0.5
PORTS = {"cam": 2001, "denm": 2002, "vam": 2018}


class WithoutSignature:
    """A BTP router for a service that requests signed packets although signing is disabled."""

    def __init__(self, router):
        self.router = router

    def btp_data_request(self, request):
        self.router.btp_data_request(dataclasses.replace(request, security_profile=SecurityProfile.NO_SECURITY))


def print_line(value):
    print(json.dumps(value, default=lambda octets: octets.hex()), flush=True)


def listen(router, message, coder):
    """Prints received messages instead of passing them to the service."""

    def received(indication):
        print_line({"message": message, "decoded": coder.decode(indication.data)})

    router.register_indication_callback_btp(port=PORTS[message], callback=received)


def stationary_hazard():
    return DENRequest(
        detection_time=int(TimeService.timestamp_its()),
        time_period=1,
        denm_interval=1,
        event_position={
            "latitude": int(LATITUDE * 1e7),
            "longitude": int(LONGITUDE * 1e7),
            "positionConfidenceEllipse": {
                "semiMajorConfidence": 100,
                "semiMinorConfidence": 100,
                "semiMajorOrientation": 0,
            },
            "altitude": {"altitudeValue": 800001, "altitudeConfidence": "unavailable"},
        },
        lcrw_cause_code="collisionRisk97",
        lcrw_subcause_code=1,
    )


def send_denms(service):
    while True:
        service.send_collision_risk_warning_denm(stationary_hazard())
        time.sleep(DENM_PERIOD_S)


def main(interface, mac, station_id):
    address = GNAddress(m=M.GN_MULTICAST, st=ST.PASSENGER_CAR, mid=MID(mac))
    geonet = GNRouter(mib=MIB(itsGnLocalGnAddr=address))
    btp = BTPRouter(geonet)
    geonet.register_indication_callback(btp.btp_data_indication)

    vehicle = VehicleData(station_id=station_id, station_type=CAR, drive_direction="forward")
    awareness = CooperativeAwarenessBasicService(btp_router=btp, vehicle_data=vehicle)
    warnings = DecentralizedEnvironmentalNotificationService(btp_router=btp, vehicle_data=vehicle)
    warnings.denm_transmission_management.btp_router = WithoutSignature(btp)
    walker = DeviceDataProvider(station_id=station_id, station_type=PEDESTRIAN)
    walkers = VRUAwarenessService(btp_router=btp, device_data_provider=walker, cluster_support=False)
    listen(btp, "cam", awareness.cam_coder)
    listen(btp, "denm", warnings.denm_coder)
    listen(btp, "vam", walkers.vam_coder)
    btp.freeze_callbacks()

    geonet.link_layer = RawLinkLayer(interface, mac, receive_callback=geonet.gn_data_indicate)
    place = ThreadStaticLocationService(period=100, latitude=LATITUDE, longitude=LONGITUDE)
    place.add_callback(geonet.refresh_ego_position_vector)
    time.sleep(0.3)  # The router needs a position before anything is sent.
    place.add_callback(awareness.cam_transmission_management.location_service_callback)
    place.add_callback(walkers.vam_transmission_management.location_service_callback)
    awareness.start()
    threading.Thread(target=send_denms, args=[warnings.denm_transmission_management], daemon=True).start()
    print_line({"ready": True})
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], bytes.fromhex(sys.argv[2].replace(":", "")), int(sys.argv[3]))
