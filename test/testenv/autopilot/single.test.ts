/** Tests the k0s scenarios ap-removedapis and ap-single, in which one host is the whole cluster. */
import { describe, expect, test } from 'vitest';
import { nodes } from '../../../src/kube/resources.ts';
import { listed } from '../../support/builders/plans.ts';
import { installRemovedKind, REMOVED_KIND_FOUND } from '../../support/doubles/removed-kind.ts';
import { forbiddenIn } from '../audit.ts';
import { DrainBlocker } from './drain-blocker.ts';
import { FROM, pairsWith, targetsIn, uniquePrefix, useScene } from './scene.ts';

/**
 * The original's own test leaves out the build. Refit refuses such a version before it asks the API server, because no
 * node could ever report it.
 */
const TOO_NEW = 'v99.99.99+k0s.0';

describe.each(pairsWith(3))('%s', (_name, combination) => {
  const prefix = uniquePrefix();
  const name = `${prefix}controller1`;
  const scene = useScene(combination, {
    controllers: 1,
    workers: 0,
    serviceFlags: ['--single'],
    played: true,
    prefix,
  });

  test('ap-removedapis: an object of a kind that is gone in the version ends the plan with a Warning', async () => {
    const at = scene();
    await using things = new AsyncDisposableStack();
    things.use(await installRemovedKind());
    const platforms = { 'linux-amd64': { url: at.url(FROM) } };
    const targets = { controllers: listed(name) };
    await at.create('removedapis', { k0supdate: { version: TOO_NEW, platforms, targets } });
    const { status } = await at.ends('Warning');
    expect(status?.commands).toMatchObject([
      { id: 0, state: 'Warning', description: REMOVED_KIND_FOUND },
    ]);
    expect(at.statusesOf(name, 'removedapis')).toEqual([]);
  });

  test('ap-single: the only node is drained, updated and made schedulable again', async () => {
    const at = scene();
    await using pod = await DrainBlocker.start(at.client, [name]);
    await pod.liftBudget();
    const before = await pod.uids();
    await at.create('single', at.forced({ controllers: listed(name) }));
    const plan = await at.ends('Completed');
    expect(plan.status?.commands).toMatchObject([{ state: 'Completed', k0supdate: {} }]);
    expect(targetsIn(plan)).toEqual([`${name} SignalCompleted`]);
    await pod.untilEverywhere();
    expect(await pod.uids()).not.toEqual(before);
    expect((await at.client.get(nodes, name)).spec?.unschedulable).toBeUndefined();
    // Agents of k0s before 1.36.3+k0s.1 may request a restart twice.
    if (combination.agents === 'refit') expect(at.host(name).starts).toBe(2);
    else expect(at.host(name).starts).toBeGreaterThanOrEqual(2);
    expect(forbiddenIn(await at.audited('"forbid"'))).toEqual([]);
  });
});
