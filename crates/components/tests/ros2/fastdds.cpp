// A peer on Fast DDS with the names of topics and types of ROS 2.
//
//   peer DOMAIN talker|listener string|cloud TOPIC BYTES|COUNT PERIOD_MS QOS
//
// As the peer on Cyclone DDS. It finds others at 127.0.0.1 only, and has no shared memory.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

#include "rosPubSubTypes.h"

using namespace eprosima::fastdds::dds;
using sensor_msgs::msg::dds_::PointCloud2_;
using std_msgs::msg::dds_::String_;

static uint8_t octet(uint32_t number, uint32_t index) { return uint8_t(number + index * 7 + index / 251); }

static DomainParticipant *join(int domain) {
  DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
  auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  udp->interfaceWhiteList.push_back("127.0.0.1");
  udp->maxInitialPeersRange = 16;
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(udp);
  eprosima::fastrtps::rtps::Locator_t local;
  eprosima::fastrtps::rtps::IPLocator::setIPv4(local, "127.0.0.1");
  qos.wire_protocol().builtin.initialPeersList.push_back(local);
  return DomainParticipantFactory::get_instance()->create_participant(uint32_t(domain), qos);
}

template <class Qos>
static Qos with(Qos qos, const std::string &text, int depth) {
  bool reliable = text.find("reliable") != std::string::npos, kept = text.find("transient_local") != std::string::npos;
  qos.reliability().kind = reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  qos.durability().kind = kept ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
  qos.history().kind = KEEP_LAST_HISTORY_QOS;
  qos.history().depth = depth;
  qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  return qos;
}

static String_ make(String_ *, uint32_t number, uint32_t) {
  String_ message;
  message.data(std::to_string(number));
  return message;
}

static PointCloud2_ make(PointCloud2_ *, uint32_t number, uint32_t bytes) {
  PointCloud2_ message;
  message.header().stamp().sec(int32_t(number));
  message.header().frame_id("lidar");
  message.width(bytes);
  message.is_dense(true);
  message.data().resize(bytes);
  for (uint32_t i = 0; i < bytes; i++) message.data()[i] = octet(number, i);
  return message;
}

static void print(const String_ &message) { std::cout << message.data() << std::endl; }

static void print(const PointCloud2_ &message) {
  uint32_t number = uint32_t(message.header().stamp().sec());
  bool intact = message.is_dense() && message.header().frame_id() == "lidar";
  for (uint32_t i = 0; i < message.data().size() && intact; i++) intact = message.data()[i] == octet(number, i);
  std::cout << number << " " << message.data().size() << (intact ? " intact" : " broken") << std::endl;
}

template <class Message, class Type>
static void run(DomainParticipant *participant, char **argv) {
  TypeSupport type(new Type());
  type.register_type(participant);
  Topic *topic = participant->create_topic(argv[4], type.get_type_name(), TOPIC_QOS_DEFAULT);
  if (std::string(argv[2]) == "talker") {
    Publisher *publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
    DataWriter *writer = publisher->create_datawriter(topic, with(DATAWRITER_QOS_DEFAULT, argv[7], 10));
    if (!writer) exit(1);
    std::cout << "ready" << std::endl;
    for (uint32_t number = 0;; number++) {
      Message message = make(static_cast<Message *>(nullptr), number, uint32_t(atoi(argv[5])));
      writer->write(&message);
      int period = atoi(argv[6]);
      std::this_thread::sleep_for(period > 0 ? std::chrono::milliseconds(period) : std::chrono::hours(1));
    }
  }
  Subscriber *subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  DataReader *reader = subscriber->create_datareader(topic, with(DATAREADER_QOS_DEFAULT, argv[7], 100));
  if (!reader) exit(1);
  std::cout << "ready" << std::endl;
  for (int left = atoi(argv[5]); left > 0;) {
    Message message;
    SampleInfo info;
    reader->wait_for_unread_message(eprosima::fastrtps::Duration_t(1, 0));
    while (left > 0 && reader->take_next_sample(&message, &info) == ReturnCode_t::RETCODE_OK) {
      if (!info.valid_data) continue;
      print(message);
      left--;
    }
  }
  std::this_thread::sleep_for(std::chrono::hours(1));
}

int main(int, char **argv) {
  DomainParticipant *participant = join(atoi(argv[1]));
  if (!participant) return 1;
  if (std::string(argv[3]) == "string") run<String_, std_msgs::msg::dds_::String_PubSubType>(participant, argv);
  run<PointCloud2_, sensor_msgs::msg::dds_::PointCloud2_PubSubType>(participant, argv);
}
