/** Proves when a controller process works without UpgradePolicies. */
import { expect, test } from 'vitest';
import { refusal } from '../../test/builders/memory-api.ts';
import { FakeClock } from '../../test/faults/fake-clock.ts';
import { upgradePolicies } from '../api/refit/upgrade-policy.ts';
import type { KubeClient } from '../kube/client.ts';
import { silentLogger } from '../util/log.ts';
import { prepareControllerProcess } from './controller-process.ts';

test.each([
  ['applies them when an API server that has just started lets it', 3, 4, []],
  ['gives them up after 5 s', Number.POSITIVE_INFINITY, 6, ['cannot read UpgradePolicies']],
])('a process that is refused at first %s', async (_, refusals, asks, said) => {
  const clock = new FakeClock();
  const warnings: string[] = [];
  let asked = 0;
  const client = {
    list: async (resource: unknown) => {
      expect(resource).toBe(upgradePolicies);
      if (asked++ < refusals) throw refusal(403, 'Forbidden');
      return await Promise.resolve({ items: [] });
    },
  } as unknown as KubeClient;
  const log = { ...silentLogger, warn: (words: string) => void warnings.push(words.split(':')[0] ?? '') };
  const config = { server: 'https://127.0.0.1:6443', user: {}, namespace: '', files: [] } as const;
  const options = { component: 'test', config, client, dialects: [], log, clock, policies: 'if-allowed' } as const;
  await clock.runUntil(prepareControllerProcess(options, new AbortController().signal));
  expect([asked, warnings]).toEqual([asks, said]);
});
