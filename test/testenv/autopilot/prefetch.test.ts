/**
 * Tests that waiting nodes download in advance. Only as many nodes do so as can start next, and only until the plan is
 * paused or deleted.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Host } from '../../../sandbox/hosts/host.ts';
import { plans } from '../../../src/api/autopilot/plan.ts';
import { type Node, nodes } from '../../../src/kube/resources.ts';
import { createInformer } from '../../../src/kube/watch/informer.ts';
import { decodeSignal } from '../../../src/signal/annotations.ts';
import { PREFETCH_ANNOTATION } from '../../../src/signal/names.ts';
import { startMixed } from '../../support/doubles/mixed.ts';
import { kubeconfigFor } from '../control-plane.ts';
import { runRefit } from '../refit-process.ts';
import { FROM, TO, uniquePrefix } from './scene.ts';

/** Long enough to pause the plan while the first worker restarts. */
const RESTART_DELAY_MS = 15_000;

test('one worker ahead of the turn, none while paused, none of a deleted plan', async () => {
  await using things = new AsyncDisposableStack();
  const mixed = things.use(
    await startMixed({
      combination: { leader: 'refit', agents: 'refit' },
      controllers: 0,
      workers: 4,
      prefix: uniquePrefix(),
      version: FROM,
      offers: [TO],
      payloadBytes: 4 * 1024 * 1024,
      restartDelayMs: RESTART_DELAY_MS,
    }),
  );
  const { client, hosts } = mixed.cluster;
  const stop = new AbortController();
  things.defer(() => stop.abort());
  const informer = createInformer(client, nodes, {});
  const asked = (): Node[] =>
    informer.list().filter(({ metadata }) => metadata.annotations?.[PREFETCH_ANNOTATION]);
  const namesAsked = (): string[] => asked().map(({ metadata }) => metadata.name);
  const most: number[] = [0];
  informer.addHandler({ updated: () => most.push(asked().length) });
  void informer.run(stop.signal);
  await informer.whenSynced(stop.signal);
  const refit = async (command: string): Promise<void> => {
    const { code } = await runRefit(command, '--kubeconfig', await kubeconfigFor('operator'));
    expect(code).toBe(0);
  };
  const statusOf = ({ name }: Host): string =>
    decodeSignal(informer.get(name)?.metadata.annotations)?.status?.status ?? '';
  const [first, second, third] = hosts as readonly [Host, Host, Host];

  await client.create(plans, mixed.cluster.plan({ id: 'ahead', version: TO, concurrent: 1 }));
  await mixed.until(async () => expect(await filesOf(second)).toContain('.k0s.refit'));
  expect(namesAsked()).toEqual([second.name]);
  expect([await second.version(), second.starts, statusOf(first)]).toEqual([
    FROM,
    1,
    expect.not.stringContaining('Completed'),
  ]);

  await refit('pause');
  await mixed.until(async () =>
    expect([namesAsked(), await filesOf(second)]).toEqual([[], ['k0s']]),
  );
  await refit('resume');
  await mixed.until(async () => await Promise.resolve(expect(namesAsked()).toEqual([third.name])));
  expect(statusOf(first)).toBe('Completed');

  await client.delete(plans, 'autopilot');
  await mixed.until(async () =>
    expect([namesAsked(), await filesOf(third)]).toEqual([[], ['k0s']]),
  );
  expect(Math.max(...most)).toBe(1);
});

async function filesOf({ directory }: Host): Promise<string[]> {
  return await readdir(join(directory, 'bin'));
}
