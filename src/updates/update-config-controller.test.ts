/** Tests that existing UpdateConfigs have metrics, and that no UpdateConfig has metrics after the term of a leader. */
import { expect, test } from 'vitest';
import { buildLog } from '../../test/support/builders/logs.ts';
import { MemoryApi } from '../../test/support/builders/memory-api.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { updateConfigs } from '../api/autopilot/update-config.ts';
import { phaseOfPlan } from '../dialects/autopilot/plan/states.ts';
import { namespaces } from '../kube/resources.ts';
import { createMetrics } from '../runtime/metrics.ts';
import { silentLogger } from '../util/log.ts';
import { updateController } from './update-config-controller.ts';
import { UpdateFollower, type UpdateParts } from './update-follower.ts';

function partsOf({ client }: MemoryApi): UpdateParts {
  return {
    client,
    writer: client,
    clock: new FakeClock(0),
    random: () => 0.5,
    log: silentLogger,
    events: { record: () => undefined },
    metrics: createMetrics(),
    phaseOf: phaseOfPlan,
    targetProblems: () => [],
    allowInsecure: true,
    environment: {},
    userAgent: 'refit-test',
    clusterInfo: undefined,
    periodMs: 1_000,
    probe: undefined,
  };
}

test('at the end of its term a leader takes the metrics of UpdateConfigs back', async () => {
  const parts = partsOf(new MemoryApi());
  const { metrics } = parts;
  const stops = updateController(parts).sources.map((source) => source.start(() => undefined));
  metrics.updateChecked('stable', 1, false);
  metrics.update('stable', 'UpToDate', 'v1.36.1', 'v1.36.1');
  const exposed = async (): Promise<number> =>
    (await metrics.expose()).body.split('config="stable"').length - 1;
  expect(await exposed()).toBe(2);
  for (const stop of stops) stop();
  expect(await exposed()).toBe(0);
});

test('the time of the last question goes from an UpdateConfig that is asked for no more', async () => {
  const api = new MemoryApi();
  api.put(namespaces, { metadata: { name: 'kube-system', uid: 'cluster' } });
  const parts = partsOf(api);
  const follower = new UpdateFollower(parts);
  const measured = async (older: string): Promise<string[]> => {
    const schedules = { older, younger: '@daily' };
    for (const [index, name] of (['older', 'younger'] as const).entries()) {
      const metadata = {
        name,
        uid: name,
        generation: 1,
        creationTimestamp: `2026-01-0${index + 1}T00:00:00Z`,
      };
      const upgradeStrategy = { type: 'cron', cron: schedules[name] } as const;
      api.put(updateConfigs, {
        metadata,
        spec: { updateServer: 'http://127.0.0.1:1', upgradeStrategy },
      });
    }
    await follower.followAll((await api.client.listAll(updateConfigs)).items, {
      abort: new AbortController().signal,
    });
    const { body } = await parts.metrics.expose();
    return [...body.matchAll(/^refit_update_(info|last).*config="(\w+)"/gm)].map(
      ([, what, of]) => `${what} ${of}`,
    );
  };
  expect(await measured('wrong')).toEqual(['info older', 'info younger', 'last younger']);
  expect(await measured('@daily')).toEqual(['info older', 'info younger', 'last older']);
});

test('a server of new versions that is named without a scheme is asked over https', async () => {
  const lines: string[] = [];
  const parts = partsOf(new MemoryApi());
  const probe = { server: '127.0.0.1:1', intervalMs: 1_000 };
  const follower = new UpdateFollower({ ...parts, probe, log: buildLog(lines, 'warn') });
  await follower.followAll([], { abort: new AbortController().signal });
  expect(lines.join()).toContain('no answer from 127.0.0.1:1');
});
