/** Proves what a leader leaves behind when its term ends. */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../test/builders/memory-api.ts';
import { FakeClock } from '../../test/faults/fake-clock.ts';
import { phaseOfPlan } from '../dialects/autopilot/states.ts';
import { createMetrics } from '../runtime/metrics.ts';
import { silentLogger } from '../util/log.ts';
import { updateController } from './update-controller.ts';

test('at the end of its term a leader takes the metrics of UpdateConfigs back', async () => {
  const [api, metrics] = [new MemoryApi(), createMetrics()];
  const controller = updateController({
    client: api.client,
    writer: api.client,
    clock: new FakeClock(0),
    random: () => 0.5,
    log: silentLogger,
    events: { record: () => undefined },
    metrics,
    phaseOf: phaseOfPlan,
    targetProblems: () => [],
    allowInsecure: false,
    environment: {},
    userAgent: 'refit-test',
    clusterInfo: undefined,
    periodMs: 1_000,
    probe: undefined,
  });
  const stops = controller.sources.map((source) => source.start(() => undefined));
  metrics.updateChecked('stable', 1, false);
  metrics.update('stable', 'UpToDate', 'v1.36.1', 'v1.36.1');
  const exposed = async (): Promise<number> => (await metrics.expose()).body.split('config="stable"').length - 1;
  expect(await exposed()).toBe(2);
  for (const stop of stops) stop();
  expect(await exposed()).toBe(0);
});
