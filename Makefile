# Common commands. Each target installs its missing requirements if possible, and otherwise lists them.
.DEFAULT_GOAL := help
.PHONY: help demo demo-duration test test-rust test-dashboard test-lap lint fuzz bench bench-its bench-bus bench-bus-full bench-drive bench-drive-full bench-bridge bench-bridge-full bench-constrained bench-abuse size-constrained rivals dashboard build build-ros2 setup clean screenshot

CARGO ?= cargo
VIADUCT := target/release/viaduct
# Network namespaces need root.
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
DASHBOARD_SOURCES := $(shell find dashboard -path dashboard/node_modules -prune -o -path dashboard/dist -prune -o -path dashboard/dist-desk -prune -o -type f -print 2>/dev/null)

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: demo-duration build  ## Run vehicles, an edge node and its API with a live map (ARGS="--vehicles 200")
	$(VIADUCT) demo $(ARGS)

demo-duration:
	@[ -x $(VIADUCT) ] && echo "Building what has changed, then the demo starts." || echo "The first build takes about 10 minutes on two cores, later ones seconds; then the demo starts."

test: test-rust test-dashboard  ## Run all tests

test-rust: setup dashboard/dist/index.html
	VIADUCT_PYTHON=$(CURDIR)/.cache/venv/bin/python $(CARGO) test --workspace --no-fail-fast
	@scripts/setup ros2
	$(CARGO) test --workspace --features viaduct-components/ros2 --test ros2

test-dashboard: dashboard/dist/index.html dashboard/node_modules/.package-lock.json
	cd dashboard && npm run --silent check && npm test --silent && node test/desk-browser.mjs && node test/desk-vehicle.mjs --cameras 2

test-lap: build  ## Drive a lap in Chromium over a link that loses 5 % (five minutes)
	cd dashboard && node test/desk-vehicle.mjs --lap --binary ../target/release/viaduct

lint:  ## Check formatting and run clippy, without warnings
	@scripts/setup toolchain ros2
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features viaduct-cli/ros2 -- -D warnings

fuzz:  ## Fuzz each decoder with a million inputs, slow ones with fewer (RUNS=1000000)
	$(CARGO) run --release -p viaduct-fuzz -- --runs $(or $(RUNS),1000000)

bench: bench-its bench-bus bench-drive bench-bridge bench-constrained bench-abuse  ## Run all benches

bench-its: build  ## Measure C-ITS: codecs, packets to MQTT and API, station to station (writes bench-its.json)
	$(VIADUCT) bench its --json bench-its.json

bench-bus: build rivals  ## Measure the bus: latency, with rivals and floors of the same run (writes bench-bus.json and .html)
	$(VIADUCT) bench bus --json bench-bus.json --html bench-bus.html

bench-bus-full: build rivals  ## Measure the bus with the paper's 5000 messages per row; resumes an interrupted run
	$(VIADUCT) bench bus --full --json bench-bus-full.json --html bench-bus-full.html

bench-drive: build rivals  ## Measure remote driving over emulated links, with rivals and the paper's tables; needs root (writes bench-drive.json)
	$(AS_ROOT) $(VIADUCT) bench drive --json bench-drive.json

bench-drive-full: build rivals  ## Measure remote driving with the paper's 10,000 frames per camera, for days; resumes an interrupted run
	$(AS_ROOT) $(VIADUCT) bench drive --full --json bench-drive-full.json

bench-bridge: build rivals  ## Measure ROS over MQTT, with rivals and the paper's tables; needs root (writes bench-bridge.json and .html)
	$(AS_ROOT) $(VIADUCT) bench bridge --json bench-bridge.json --html bench-bridge.html

bench-bridge-full: build rivals  ## Measure ROS over MQTT with the paper's 600 messages per cell, for two days; resumes an interrupted run
	$(AS_ROOT) $(VIADUCT) bench bridge --full --json bench-bridge-full.json --html bench-bridge-full.html

bench-constrained: build rivals  ## Measure MQTT-SN and CoAP, with rivals and the paper's figures; lossy links need root (writes bench-constrained.json and .html)
	-@scripts/size-constrained
	$(AS_ROOT) $(VIADUCT) bench constrained --json bench-constrained.json --html bench-constrained.html

bench-abuse: build  ## Attack the listeners of a node while others are served (writes bench-abuse.json and .html)
	$(VIADUCT) bench abuse --json bench-abuse.json --html bench-abuse.html

size-constrained:  ## Measure code and memory of the codecs of MQTT-SN and CoAP on microcontrollers
	@scripts/size-constrained

rivals:  ## Build the programs that the benches compare Viaduct with, as far as possible
	-@scripts/setup rivals

build: dashboard/dist/index.html  ## Build the binary, including the dashboard
	@scripts/setup toolchain
	$(CARGO) build --release -p viaduct-cli

build-ros2: dashboard/dist/index.html  ## Build the binary with ROS 2 (kind ros2_node), which needs cmake and libclang
	@scripts/setup toolchain ros2
	$(CARGO) build --release -p viaduct-cli --features ros2

dashboard: dashboard/dist/index.html  ## Build the web pages (needs Node.js)

dashboard/dist/index.html: $(DASHBOARD_SOURCES) dashboard/node_modules/.package-lock.json
	cd dashboard && npm run --silent build
	@touch $@

dashboard/node_modules/.package-lock.json: dashboard/package.json dashboard/package-lock.json
	@scripts/setup nodejs
	cd dashboard && npm ci --silent --no-audit --no-fund
	@touch $@

setup:  ## Install the requirements of the tests: Debian packages, Python environments, Californium
	@scripts/setup toolchain peers python flexstack californium

screenshot: build  ## Take the screenshot of the README
	scripts/screenshot $(VIADUCT) docs/dashboard.png

clean:  ## Remove all build outputs
	$(CARGO) clean
	$(MAKE) -C rivals clean
	rm -rf .cache dashboard/dist dashboard/dist-desk dashboard/node_modules examples/microcontroller/target
