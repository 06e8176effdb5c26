/**
 * Tests what happens to a node in `Restart`. The table covers the running version, whether this process ordered the
 * restart, whether the update is forced, and the release.
 */
import { expect, test } from 'vitest';
import { nodes } from '../../../../src/kube/resources.ts';
import { decodeSignal, encodeSignal, type SignalData } from '../../../../src/signal/annotations.ts';
import { systemClock } from '../../../../src/util/clock.ts';
import { silentLogger } from '../../../../src/util/log.ts';
import { MemoryApi } from '../../builders/memory-api.ts';
import { buildNode } from '../../builders/nodes.ts';
import { quirksOf, VARIANTS } from '../quirks.ts';
import { timesOf } from '../times.ts';
import { type Machine, RestartTracker } from './parts.ts';
import { updateControllers } from './update-phases.ts';

const WANTED = 'v1.36.4+k0s.0';
const WITH_TRACKER = VARIANTS['v1.36.3'];
const WITHOUT = VARIANTS['>=1.35'];

type Outcome = 'UnCordoning' | 'SIGTERM' | 'nothing';
type Place = 'restart' | 'restarted';

/** Reconciles one node in `Restart` once. `pending` means that this process wrote the status `Restart`. */
async function reconcile(
  place: Place,
  release: string,
  pending: boolean,
  forced: boolean,
  running: string,
) {
  const command = {
    id: 0,
    kind: 'k0supdate',
    url: 'http://x/k0s',
    version: WANTED,
    forceupdate: forced,
  } as const;
  const status = { status: 'Restart', timestamp: '2026-01-01T00:00:01Z' };
  const signal: SignalData = { planId: 'p', created: '2026-01-01T00:00:00Z', command, status };
  const api = new MemoryApi();
  const node = api.put(nodes, buildNode('w1', { annotations: encodeSignal(signal) }));
  const tracker = new RestartTracker();
  if (pending) tracker.record(signal);
  let outcome: Outcome = 'nothing';
  const machine: Machine = {
    binaryDirectory: '',
    imagesDirectory: '',
    userAgent: '',
    version: () => Promise.resolve(running),
    terminate: () => {
      outcome = 'SIGTERM';
      return Promise.resolve();
    },
  };
  const parts = {
    tracker,
    machine,
    quirks: quirksOf(release),
    times: timesOf(1),
    clock: systemClock,
  };
  const more = { log: silentLogger, random: Math.random, abort: new AbortController().signal };
  const cache = { get: () => node, list: () => [] } as never;
  const controllers = updateControllers(
    { name: 'w1', client: api.client, cache, ...parts, ...more },
    nodes,
  );
  await controllers.find(({ name }) => name === place)?.reconcile('w1');
  const now = decodeSignal(api.read(nodes, 'w1').metadata.annotations)?.status?.status;
  return now === 'Restart' ? outcome : now;
}

test.each<
  [
    place: Place,
    release: string,
    pending: boolean,
    forced: boolean,
    runs: 'wanted' | 'another',
    Outcome,
  ]
>([
  ['restart', WITH_TRACKER, true, false, 'wanted', 'UnCordoning'],
  // If the running version has the same text as the wanted version, there is no restart, forced or not.
  ['restart', WITH_TRACKER, true, true, 'wanted', 'UnCordoning'],
  ['restart', WITH_TRACKER, true, false, 'another', 'SIGTERM'],
  ['restart', WITH_TRACKER, true, true, 'another', 'SIGTERM'],
  ['restart', WITH_TRACKER, false, false, 'wanted', 'UnCordoning'],
  ['restart', WITH_TRACKER, false, true, 'another', 'UnCordoning'],
  ['restart', WITH_TRACKER, false, false, 'another', 'nothing'],
  ['restarted', WITH_TRACKER, true, false, 'wanted', 'nothing'],
  ['restarted', WITH_TRACKER, true, true, 'another', 'nothing'],
  ['restarted', WITH_TRACKER, false, false, 'wanted', 'UnCordoning'],
  ['restarted', WITH_TRACKER, false, true, 'another', 'UnCordoning'],
  ['restarted', WITH_TRACKER, false, false, 'another', 'nothing'],
  // Without a tracker, every update event counts as the order to restart, and every creation event counts as the end of
  // a restart.
  ['restart', WITHOUT, false, false, 'wanted', 'UnCordoning'],
  ['restart', WITHOUT, false, false, 'another', 'SIGTERM'],
  ['restart', WITHOUT, false, true, 'another', 'SIGTERM'],
  ['restarted', WITHOUT, true, true, 'another', 'UnCordoning'],
  ['restarted', WITHOUT, false, false, 'another', 'nothing'],
])(
  '%s in %s, ordered here: %s, forced: %s, %s version: %s',
  async (place, release, pending, forced, runs, outcome) => {
    expect(
      await reconcile(place, release, pending, forced, runs === 'wanted' ? WANTED : 'v0'),
    ).toBe(outcome);
  },
);
