/**
 * Tests MachineDrainRules in the middle of an update. Refit's own drain skips, awaits or orders the pods that the rules
 * select.
 */
import { pods } from '../../../../src/kube/resources.ts';
import { machineDrainRules, NAMESPACE, of } from '../machines/objects.ts';
import { conditionOf } from '../machines/settled.ts';
import type { Scene } from '../scene.ts';
import { createPods, podOf, removePods } from './paused.ts';
import { wantWorkers } from './update.ts';

/** The labels of the pods, by what the drain does with the pods. */
const PODS = {
  plain: {},
  kept: { app: 'kept' },
  awaited: { app: 'awaited' },
  last: { app: 'last' },
};
type Sort = keyof typeof PODS;

const RULES = {
  kept: { behavior: 'Skip' },
  awaited: { behavior: 'WaitCompleted' },
  last: { behavior: 'Drain', order: 5 },
};

export async function drainRulesKept(scene: Scene): Promise<void> {
  const { checks, cluster } = scene;
  const { client } = cluster;
  const before = await scene.identities('workers');
  const version = scene.nextVersion();
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE } };
  for (const [sort, drain] of Object.entries(RULES)) {
    const selector = { matchLabels: PODS[sort as keyof typeof RULES] };
    await scene.apply(
      of('cluster.x-k8s.io', 'MachineDrainRule', sort, {
        drain,
        pods: [{ selector, namespaceSelector }],
      }),
    );
  }
  for (const { node } of before.values()) await createPods(scene, node, PODS);
  const missing = async (node: string, kept: readonly Sort[]): Promise<string[]> => {
    const found = await Promise.all(
      kept.map(async (sort) => await podOf(scene, `${sort}-${node}`)),
    );
    return kept.filter((_, index) => !found[index]).map((sort) => `${sort}-${node} is gone`);
  };
  await checks.check(
    'a drain evicts the plain pod, waits for one, and leaves those of Skip and of a later order',
    async () => {
      await wantWorkers(scene, { version });
      let node = '';
      await scene.until('a Machine that tells what it waits for', async () => {
        const machines = await scene.machines('workers');
        const told = machines.find((each) =>
          conditionOf(each, 'Updating')?.message?.includes('/awaited-'),
        );
        node = told?.status?.nodeRef?.name ?? '';
        return told !== undefined;
      });
      await scene.until(
        'the end of the plain pod',
        async () => (await podOf(scene, `plain-${node}`)) === undefined,
      );
      return await missing(node, ['kept', 'awaited', 'last']);
    },
  );
  await checks.check(
    'once that one has ended, the last is evicted, and both workers end in place',
    async () => {
      const ended = { status: { phase: 'Succeeded' } };
      for (const { node } of before.values())
        await client.patch(pods, `awaited-${node}`, ended, {
          type: 'merge',
          namespace: NAMESPACE,
          subresource: 'status',
        });
      await scene.settled('workers', version);
      const wrong = [...before.values()].map(async ({ node }) => [
        ...(await missing(node, ['kept'])),
        ...((await podOf(scene, `last-${node}`)) ? [`last-${node} was not evicted`] : []),
      ]);
      return [
        ...(await scene.wrongAfter('workers', version, before)),
        ...(await Promise.all(wrong)).flat(),
      ];
    },
  );
  for (const rule of Object.keys(RULES))
    await client.delete(machineDrainRules, rule, { namespace: NAMESPACE });
  for (const { node } of before.values()) await removePods(scene, node, Object.keys(PODS));
}
