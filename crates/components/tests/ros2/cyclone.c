// A peer on Cyclone DDS with the names of topics and types of ROS 2.
//
//   peer DOMAIN talker|listener string|cloud|reading TOPIC BYTES|COUNT PERIOD_MS QOS [USER_DATA]
//   peer DOMAIN nodes [ANNOUNCED]
//
// QOS contains `reliable` or `best_effort`, and `volatile` or `transient_local`. A listener prints `ready`, a line for each message, and
// after COUNT messages the USER_DATA of their publishers. `nodes` prints the nodes of each participant, and announces one itself.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dds/dds.h"
#include "graph.h"
#include "ros.h"

static void fail(const char *what, dds_return_t code) {
  fprintf(stderr, "%s: %s\n", what, dds_strretcode(-code));
  exit(1);
}

static dds_entity_t check(const char *what, dds_entity_t entity) {
  if (entity < 0) fail(what, entity);
  return entity;
}

static dds_qos_t *qos_of(const char *text, const char *user_data, int depth) {
  dds_qos_t *qos = dds_create_qos();
  bool reliable = strstr(text, "reliable") != NULL;
  dds_qset_reliability(qos, reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_SECS(10));
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, depth);
  if (strstr(text, "transient_local")) {
    dds_qset_durability(qos, DDS_DURABILITY_TRANSIENT_LOCAL);
    dds_qset_durability_service(qos, 0, DDS_HISTORY_KEEP_LAST, depth, -1, -1, -1);
  }
  if (user_data) dds_qset_userdata(qos, user_data, strlen(user_data));
  return qos;
}

static uint8_t octet(uint32_t number, uint32_t index) { return (uint8_t)(number + index * 7 + index / 251); }

static const dds_topic_descriptor_t *descriptor(const char *type) {
  if (!strcmp(type, "string")) return &std_msgs_msg_dds__String__desc;
  if (!strcmp(type, "cloud")) return &sensor_msgs_msg_dds__PointCloud2__desc;
  return &acme_msgs_msg_dds__Reading__desc;
}

static dds_return_t write_one(dds_entity_t writer, const char *type, uint32_t number, uint32_t bytes) {
  if (!strcmp(type, "string")) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu32, number);
    std_msgs_msg_dds__String_ message = {.data = text};
    return dds_write(writer, &message);
  }
  if (!strcmp(type, "reading")) {
    acme_msgs_msg_dds__Reading_ message = {.number = number, .value = number * 0.5, .unit = "m/s"};
    return dds_write(writer, &message);
  }
  static uint8_t *data;
  if (!data) data = malloc(bytes);
  for (uint32_t i = 0; i < bytes; i++) data[i] = octet(number, i);
  sensor_msgs_msg_dds__PointField_ field = {.name = "x", .offset = 0, .datatype = 7, .count = 1};
  sensor_msgs_msg_dds__PointCloud2_ message = {
      .header = {.stamp = {.sec = (int32_t)number, .nanosec = 0}, .frame_id = "lidar"},
      .height = 1, .width = bytes, .point_step = 1, .row_step = bytes, .is_dense = true};
  message.fields._length = message.fields._maximum = 1;
  message.fields._buffer = &field;
  message.data._length = message.data._maximum = bytes;
  message.data._buffer = data;
  dds_time_t now = dds_time();
  message.header.stamp.nanosec = (uint32_t)(now % 1000000000);
  return dds_write(writer, &message);
}

static void print_one(const char *type, const void *sample) {
  if (!strcmp(type, "string")) {
    printf("%s\n", ((const std_msgs_msg_dds__String_ *)sample)->data);
  } else if (!strcmp(type, "reading")) {
    const acme_msgs_msg_dds__Reading_ *reading = sample;
    printf("%" PRIu32 " %.1f %s\n", reading->number, reading->value, reading->unit);
  } else {
    const sensor_msgs_msg_dds__PointCloud2_ *cloud = sample;
    // The nanosecond at which the publisher began to write, modulo one second.
    int64_t late = (dds_time() % 1000000000 - (int64_t)cloud->header.stamp.nanosec + 1000000000) % 1000000000;
    uint32_t number = (uint32_t)cloud->header.stamp.sec;
    bool intact = cloud->is_dense && !strcmp(cloud->header.frame_id, "lidar");
    for (uint32_t i = 0; i < cloud->data._length && intact; i++) intact = cloud->data._buffer[i] == octet(number, i);
    printf("%" PRIu32 " %" PRIu32 " %s %" PRId64 "\n", number, cloud->data._length, intact ? "intact" : "broken", late / 1000);
  }
}

static void talk(dds_entity_t participant, char **argv) {
  const char *type = argv[3];
  dds_entity_t topic = check("topic", dds_create_topic(participant, descriptor(type), argv[4], NULL, NULL));
  dds_qos_t *qos = qos_of(argv[7], argv[8], 10);
  dds_entity_t writer = check("writer", dds_create_writer(participant, topic, qos, NULL));
  printf("ready\n");
  for (uint32_t number = 0;; number++) {
    dds_return_t code = write_one(writer, type, number, (uint32_t)atoi(argv[5]));
    if (code != DDS_RETCODE_OK && code != DDS_RETCODE_TIMEOUT) fail("write", code);
    int period = atoi(argv[6]);
    // A period of zero sends one message and stays, as a publisher of a map does.
    dds_sleepfor(period > 0 ? DDS_MSECS(period) : DDS_SECS(3600));
  }
}

static void print_user_data(dds_entity_t reader) {
  dds_instance_handle_t handles[16];
  int count = dds_get_matched_publications(reader, handles, 16);
  for (int i = 0; i < count && i < 16; i++) {
    dds_builtintopic_endpoint_t *endpoint = dds_get_matched_publication_data(reader, handles[i]);
    void *value = NULL;
    size_t length = 0;
    if (endpoint && dds_qget_userdata(endpoint->qos, &value, &length)) printf("user data: %.*s\n", (int)length, (char *)value);
  }
}

static void listen_to(dds_entity_t participant, char **argv) {
  const char *type = argv[3];
  dds_entity_t topic = check("topic", dds_create_topic(participant, descriptor(type), argv[4], NULL, NULL));
  dds_entity_t reader = check("reader", dds_create_reader(participant, topic, qos_of(argv[7], argv[8], 100), NULL));
  dds_entity_t set = check("waitset", dds_create_waitset(participant));
  dds_set_status_mask(reader, DDS_DATA_AVAILABLE_STATUS);
  dds_waitset_attach(set, reader, 0);
  printf("ready\n");
  for (int left = atoi(argv[5]); left > 0;) {
    dds_waitset_wait(set, NULL, 0, DDS_INFINITY);
    void *samples[16] = {NULL};
    dds_sample_info_t infos[16];
    int count = dds_take(reader, samples, infos, 16, 16);
    for (int i = 0; i < count; i++) {
      if (!infos[i].valid_data) continue;
      print_one(type, samples[i]);
      if (--left == 0) print_user_data(reader);
    }
    if (count > 0) dds_return_loan(reader, samples, count);
  }
  dds_sleepfor(DDS_SECS(3600));
}

static void announce(dds_entity_t writer, char *name) {
  rmw_dds_common_msg_dds__NodeEntitiesInfo_ node = {.node_namespace = "/", .node_name = {0}};
  strcpy(node.node_namespace, "/");
  strncpy(node.node_name, name, sizeof node.node_name - 1);
  rmw_dds_common_msg_dds__ParticipantEntitiesInfo_ message = {.gid = {.data = {1}}};
  message.node_entities_info_seq._length = message.node_entities_info_seq._maximum = 1;
  message.node_entities_info_seq._buffer = &node;
  if (dds_write(writer, &message) != DDS_RETCODE_OK) exit(1);
}

static void show_nodes(dds_entity_t participant, char *announced) {
  const dds_topic_descriptor_t *type = &rmw_dds_common_msg_dds__ParticipantEntitiesInfo__desc;
  dds_entity_t topic = check("topic", dds_create_topic(participant, type, "ros_discovery_info", NULL, NULL));
  dds_qos_t *qos = qos_of("reliable transient_local", NULL, 1);
  if (announced) announce(check("writer", dds_create_writer(participant, topic, qos, NULL)), announced);
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  dds_qset_ignorelocal(qos, DDS_IGNORELOCAL_PARTICIPANT);
  dds_entity_t reader = check("reader", dds_create_reader(participant, topic, qos, NULL));
  printf("ready\n");
  for (;; dds_sleepfor(DDS_MSECS(5))) {
    void *samples[1] = {NULL};
    dds_sample_info_t info;
    if (dds_take(reader, samples, &info, 1, 1) < 1) continue;
    rmw_dds_common_msg_dds__ParticipantEntitiesInfo_ *message = samples[0];
    for (uint32_t i = 0; info.valid_data && i < message->node_entities_info_seq._length; i++) {
      rmw_dds_common_msg_dds__NodeEntitiesInfo_ *node = &message->node_entities_info_seq._buffer[i];
      printf("%s %s %" PRIu32 " %" PRIu32 "\n", node->node_namespace, node->node_name, node->reader_gid_seq._length, node->writer_gid_seq._length);
    }
    dds_return_loan(reader, samples, 1);
  }
}

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  dds_entity_t participant = check("participant", dds_create_participant((uint32_t)atoi(argv[1]), NULL, NULL));
  if (!strcmp(argv[2], "nodes")) show_nodes(participant, argc > 3 ? argv[3] : NULL);
  if (!strcmp(argv[2], "talker")) talk(participant, argv);
  listen_to(participant, argv);
}
