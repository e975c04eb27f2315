/* The client of libcoap: sends confirmable or non-confirmable POSTs one after the other and prints the time of each.
 *
 *   libcoap ADDRESS PORT PATH COUNT OCTETS con|non
 *
 * Output: {"version":"4.3.1","latencies_ns":[...],"undelivered":0}. The latency is the time from the call that sends to the response; a
 * request without a response counts as undelivered.
 */
#include <coap3/coap.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAITING, ANSWERED, FAILED };

/* Longest wait for the response to a non-confirmable request. */
static const uint64_t NON_WAIT_NS = 2000000000u;
/* Longest wait in one call of libcoap, in milliseconds. */
static const uint32_t PROCESS_MS = 500;

static int state;

static coap_response_t on_response(coap_session_t *session, const coap_pdu_t *sent, const coap_pdu_t *received, const coap_mid_t id) {
  (void)session, (void)sent, (void)id;
  state = COAP_RESPONSE_CLASS(coap_pdu_get_code(received)) == 2 ? ANSWERED : FAILED;
  return COAP_RESPONSE_OK;
}

static void on_nack(coap_session_t *session, const coap_pdu_t *sent, const coap_nack_reason_t reason, const coap_mid_t id) {
  (void)session, (void)sent, (void)reason, (void)id;
  state = FAILED;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int send_one(coap_session_t *session, int is_con, const char *path, size_t octets, const uint8_t *payload) {
  coap_pdu_t *pdu = coap_new_pdu(is_con ? COAP_MESSAGE_CON : COAP_MESSAGE_NON, COAP_REQUEST_CODE_POST, session);
  uint8_t token[8];
  size_t token_octets;
  if (!pdu) return 0;
  coap_session_new_token(session, &token_octets, token);
  coap_add_token(pdu, token_octets, token);
  coap_add_option(pdu, COAP_OPTION_URI_PATH, strlen(path), (const uint8_t *)path);
  coap_add_data(pdu, octets, payload);
  return coap_send(session, pdu) != COAP_INVALID_MID;
}

int main(int argc, char **argv) {
  if (argc != 7) {
    fprintf(stderr, "usage: libcoap ADDRESS PORT PATH COUNT OCTETS con|non\n");
    return 2;
  }
  const char *path = argv[3];
  const long count = atol(argv[4]), octets = atol(argv[5]);
  const int is_con = strcmp(argv[6], "con") == 0;
  coap_address_t address;
  coap_startup();
  coap_address_init(&address);
  address.size = sizeof(address.addr.sin);
  address.addr.sin.sin_family = AF_INET;
  address.addr.sin.sin_port = htons((uint16_t)atoi(argv[2]));
  if (inet_pton(AF_INET, argv[1], &address.addr.sin.sin_addr) != 1 || count < 1 || octets < 0 || octets > 1024) {
    fprintf(stderr, "an argument is not valid\n");
    return 2;
  }
  coap_context_t *context = coap_new_context(NULL);
  coap_session_t *session = context ? coap_new_client_session(context, NULL, &address, COAP_PROTO_UDP) : NULL;
  if (!session) {
    fprintf(stderr, "cannot open a session\n");
    return 1;
  }
  coap_register_response_handler(context, on_response);
  coap_register_nack_handler(context, on_nack);
  uint8_t payload[1024];
  memset(payload, 'x', sizeof payload);
  long undelivered = 0;
  printf("{\"version\":\"%s\",\"latencies_ns\":[", coap_package_version() + (strncmp(coap_package_version(), "libcoap ", 8) == 0 ? 8 : 0));
  for (long number = 0, printed = 0; number < count; number++) {
    const uint64_t start = now_ns();
    state = send_one(session, is_con, path, (size_t)octets, payload) ? WAITING : FAILED;
    while (state == WAITING && (is_con || now_ns() - start < NON_WAIT_NS)) coap_io_process(context, PROCESS_MS);
    if (state == ANSWERED) printf("%s%llu", printed++ ? "," : "", (unsigned long long)(now_ns() - start));
    else undelivered++;
  }
  printf("],\"undelivered\":%ld}\n", undelivered);
  coap_session_release(session);
  coap_free_context(context);
  coap_cleanup();
  return 0;
}
