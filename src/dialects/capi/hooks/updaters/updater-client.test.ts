/** Proves that calls of updaters are counted. Their answers are tested in test/attacks/hostile-updater.test.ts. */
import { expect, test } from 'vitest';
import { buildUpdater } from '../../../../../test/support/builders/updater-sets.ts';
import { createMetrics } from '../../../../runtime/metrics.ts';
import { type CallUpdater, observed } from './updater-client.ts';

test('calls are counted by updater, hook and outcome, those without an answer too', async () => {
  const metrics = createMetrics();
  const answers: Readonly<Record<string, () => ReturnType<CallUpdater>>> = {
    files: async () => await Promise.resolve({ status: 'Success' }),
    ntp: async () => await Promise.resolve({ status: 'Failure', message: 'no clock' }),
    lost: async () => await Promise.reject(new Error('no answer')),
  };
  const call = observed(
    async ({ name }) => await (answers[name]?.() ?? Promise.reject(new Error(name))),
    metrics.updaterCalled,
  );
  const ask = async (name: string) =>
    await call(buildUpdater(name), 'UpdateMachine', {}, new AbortController().signal);
  await ask('files');
  await ask('files');
  expect(await ask('ntp')).toMatchObject({ message: 'no clock' });
  await expect(ask('lost')).rejects.toThrow('no answer');
  const { body } = await metrics.expose();
  expect(
    body.split('\n').filter((line) => line.startsWith('refit_updater_duration_seconds_count')),
  ).toEqual([
    'refit_updater_duration_seconds_count{updater="files",hook="UpdateMachine",outcome="Success"} 2',
    'refit_updater_duration_seconds_count{updater="ntp",hook="UpdateMachine",outcome="Failure"} 1',
    'refit_updater_duration_seconds_count{updater="lost",hook="UpdateMachine",outcome="<error>"} 1',
  ]);
});
