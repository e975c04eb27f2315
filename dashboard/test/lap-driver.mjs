// A simulated gamepad and a driver that follows the line `course` of the map. Both run in the page.

/** Runs in the page: a gamepad that `follow` moves. */
export function stubGamepad() {
  globalThis.pad = { axes: [0, 0, 0, 0], buttons: {} };
  navigator.getGamepads = () => {
    const { axes, buttons } = globalThis.pad;
    return [{ id: "Lap pad (STANDARD GAMEPAD)", mapping: "standard", index: 0, connected: true, axes, buttons: Array.from({ length: 17 }, (_, at) => ({ value: buttons[at] ?? 0, pressed: (buttons[at] ?? 0) > 0.5 })) }];
  };
}

/** Runs in the page: follows the course (pure pursuit) until the vehicle has driven its length, or until `globalThis.lap.stop()`. */
export function follow(speed_mps) {
  const DEAD_ZONE = 0.08;
  const WHEELBASE_M = 2.7;
  // Without repeated points: beside one, the distance from the line would be that from the point.
  const course = window.viaductDesk.map().lines.find(({ kind }) => kind === "course").points.filter((point, index, all) => distance(point, all.at(index - 1)) > 0.05);
  const steps = course.map((point, index) => distance(point, course[(index + 1) % course.length]));
  const length_m = steps.reduce((sum, step) => sum + step, 0);
  const max_rad = window.viaductDesk.session().welcome.vehicle.steering_max_rad;
  const drives = () => ["ready", "driving", "hold"].includes(window.viaductDesk.state()?.driving.state) && window.viaductDesk.state().driving.holder?.you === true;
  let last = window.viaductDesk.map().vehicle;
  const lap = { done: false, stopped: false, deviationMax_m: 0, way_m: 0, drives, stop };
  globalThis.lap = lap;
  const timer = setInterval(() => {
    const { vehicle } = window.viaductDesk.map();
    if (!vehicle) return;
    lap.way_m += distance(vehicle, last);
    last = vehicle;
    lap.deviationMax_m = Math.max(lap.deviationMax_m, fromLine(vehicle));
    lap.done = lap.way_m >= length_m;
    if (lap.done) stop();
    else globalThis.pad = { axes: [stick(steer(vehicle)), 0, 0, 0], buttons: pedals() };
  }, 20);

  /** Releases the gamepad. */
  function stop() {
    clearInterval(timer);
    lap.stopped = true;
    globalThis.pad = { axes: [0, 0, 0, 0], buttons: {} };
  }

  function steer(vehicle) {
    // A longer distance cuts corners by more than the permitted deviation.
    const ahead_m = 2 + 0.5 * Math.abs(window.viaductDesk.state().vehicle.speed_mps ?? 0);
    const target = pointAhead(nearest(vehicle), ahead_m);
    const [east, north] = [target.east_m - vehicle.east_m, target.north_m - vehicle.north_m];
    const heading = ((90 - vehicle.heading_deg) * Math.PI) / 180;
    const angle = Math.atan2(north, east) - heading;
    return Math.atan((2 * WHEELBASE_M * Math.sin(angle)) / Math.hypot(east, north)) / max_rad;
  }

  /** The inverse of the shape that the page gives to a stick. */
  function stick(share) {
    const size = Math.min(1, Math.abs(share)) ** (1 / 1.6);
    return size === 0 ? 0 : -Math.sign(share) * (DEAD_ZONE + size * (1 - DEAD_ZONE));
  }

  function pedals() {
    const missing = speed_mps - (window.viaductDesk.state()?.vehicle.speed_mps ?? 0);
    return { 5: 1, 7: Math.min(1, Math.max(0, 0.15 + missing * 0.5)), 6: missing < -1 ? Math.min(1, -missing * 0.2) : 0 };
  }

  function nearest(point) {
    return course.reduce((best, candidate, index) => (distance(candidate, point) < distance(course[best], point) ? index : best), 0);
  }

  function pointAhead(index, ahead_m) {
    let [at, left_m] = [index, ahead_m];
    while (left_m > 0) {
      left_m -= Math.max(steps[at], 0.01);
      at = (at + 1) % course.length;
    }
    return course[at];
  }

  function fromLine(point) {
    const at = nearest(point);
    return Math.min(fromSegment(point, course[at], course[(at + 1) % course.length]), fromSegment(point, course[(at - 1 + course.length) % course.length], course[at]));
  }

  function fromSegment(point, a, b) {
    const [east, north] = [b.east_m - a.east_m, b.north_m - a.north_m];
    const square = east ** 2 + north ** 2;
    const share = square === 0 ? 0 : Math.min(1, Math.max(0, ((point.east_m - a.east_m) * east + (point.north_m - a.north_m) * north) / square));
    return Math.hypot(point.east_m - a.east_m - share * east, point.north_m - a.north_m - share * north);
  }

  function distance(a, b) {
    return Math.hypot(a.east_m - b.east_m, a.north_m - b.north_m);
  }
}
