/** Tests that the report gets the reason why a step does not end, and that nothing else is written. */
import { expect, test } from 'vitest';
import { MemoryStore, viewOf } from '../../../test/agent/memory-object.ts';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import { StatusError } from '../../kube/status-error.ts';
import { decodeReport, encodeReport, type SignalData } from '../../signal/annotations.ts';
import { silentLogger } from '../../util/log.ts';
import { reasonReporter } from './reason-report.ts';

const SIGNAL: SignalData = {
  planId: 'p',
  created: '2026-11-22T08:00:00Z',
  command: { id: 0, kind: 'kubeadmupdate', url: 'https://example.com/list', version: 'v1.36.3' },
};

function rig() {
  const clock = new FakeClock();
  const store = new MemoryStore();
  const { created } = SIGNAL;
  store.send(SIGNAL, encodeReport({ created, from: 'v1.36.2', spent: { Downloading: 7 } }));
  store.advance('ApplyingUpdate');
  const stop = new AbortController();
  const report = reasonReporter({ object: viewOf(store), clock, log: silentLogger });
  return {
    clock,
    store,
    stop,
    report: async (reason: string) => await report(SIGNAL, reason, stop.signal),
    written: () => decodeReport(store.object.metadata.annotations, created),
  };
}

const unavailable = (): never => {
  throw new StatusError({ kind: 'Status', code: 503, reason: 'ServiceUnavailable' });
};

test('a reason is added to the report, which keeps the rest', async () => {
  const { report, written } = rig();
  await report('it crashed once');
  expect(written()).toEqual({
    created: SIGNAL.created,
    from: 'v1.36.2',
    spent: { Downloading: 7 },
    reason: 'it crashed once',
  });
});

test('a write that fails is repeated each second, until a later reason takes its place', async () => {
  const { report, written, store, clock } = rig();
  let writes = 0;
  store.beforeWrite = () => {
    writes += 1;
    unavailable();
  };
  const first = report('it crashed once');
  await clock.advance(2_000);
  expect([writes, written()?.reason]).toEqual([3, undefined]);
  store.beforeWrite = () => undefined;
  await report('it crashed 2 times');
  await clock.advance(1_000);
  await first;
  expect(written()?.reason).toBe('it crashed 2 times');
});

test('the attempts to report a reason end with the step', async () => {
  const { report, written, store, stop } = rig();
  store.beforeWrite = unavailable;
  const reported = report('it crashed once');
  stop.abort();
  await reported;
  expect(written()?.reason).toBeUndefined();
});

test.each([
  ['is over', (store: MemoryStore) => store.advance('Failed')],
  [
    'was replaced',
    (store: MemoryStore) => store.send({ ...SIGNAL, created: '2026-11-22T09:00:00Z' }),
  ],
])('no reason is written if the signal %s', async (_name, change) => {
  const { report, store } = rig();
  change(store);
  const { object } = store;
  await report('it crashed once');
  expect(store.object).toBe(object);
});
