/**
 * Tests a common situation with GitOps: somebody edits a Plan that has ended, and a policy allows the edit to start a
 * second rollout.
 */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { plans } from '../../../src/api/autopilot/plan.ts';
import { upgradePolicies } from '../../../src/api/kinds.ts';
import { RESTART_ANNOTATION } from '../../../src/engine/model/runs.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { listed } from '../../support/builders/plans.ts';
import { buildUpgradePolicy } from '../../support/builders/policies.ts';
import { PAIRS, TO, targetsIn, uniquePrefix, useScene } from './scene.ts';

/** A leader of k0s ignores policies. */
const OUR_LEADERS = PAIRS.filter(([, { leader }]) => leader === 'refit');
const UNFINISHED = 'SchedulableWait';

describe.each(OUR_LEADERS)('%s', (_name, combination) => {
  const prefix = uniquePrefix();
  const controller = `${prefix}controller1`;
  const worker = `${prefix}worker1`;
  const scene = useScene(combination, { controllers: 1, workers: 1, played: true, prefix });

  beforeEach(async () => {
    const at = scene();
    const policy = buildUpgradePolicy('gitops', { edits: { afterEnd: 'Restart' } });
    const { name } = (await at.client.create(upgradePolicies, policy)).metadata;
    onTestFinished(async () => await at.client.delete(upgradePolicies, name));
    await at.until(async () => {
      const { status } = await at.client.get(upgradePolicies, name);
      expect(status?.conditions?.find(({ type }) => type === 'Accepted')?.status).toBe('True');
    });
  });

  test('an edit of the version after the end runs a second rollout on every node', async () => {
    const at = scene();
    const targets = { controllers: listed(controller), workers: listed(worker) };
    await at.create('gitops', at.forced(targets));
    await at.ends('Completed');
    const statesOfFirst = at.seen.states.length;
    const startsOfFirst = {
      controller: at.host(controller).starts,
      worker: at.host(worker).starts,
    };

    const platforms = { 'linux-amd64': { url: at.url(TO) } };
    const command = { k0supdate: { version: TO, platforms, targets } };
    // The edit is repeated after a conflict, because the leader may write the Plan once more after its end.
    await at.until(async () => {
      const plan = await at.plan();
      await at.client.replace(plans, { ...plan, spec: { ...plan.spec, commands: [command] } });
    });
    const generation = 2;
    const run = `gitops-g${generation}`;
    await at.until(() => expect(at.seen.states.length).toBeGreaterThan(statesOfFirst));
    const second = await at.ends('Completed');

    expect(at.seen.states.slice(statesOfFirst - 1)).toEqual(['Completed', UNFINISHED, 'Completed']);
    expect(targetsIn(second)).toEqual([
      `${controller} SignalCompleted`,
      `${worker} SignalCompleted`,
    ]);
    expect(second.spec.id).toBe('gitops');
    expect(second.metadata.annotations?.[RESTART_ANNOTATION]).toBe(JSON.stringify({ generation }));
    for (const name of [controller, worker]) {
      expect(at.statusesOf(name, 'gitops').at(-1)).toBe('Completed');
      expect(at.statusesOf(name, run)).toContain('Restart');
      expect(at.statusesOf(name, run).at(-1)).toBe('Completed');
    }
    expect(at.host(controller).starts).toBeGreaterThan(startsOfFirst.controller);
    expect(at.host(worker).starts).toBeGreaterThan(startsOfFirst.worker);
    await at.until(async () => {
      const { status } = await at.client.get(controlNodes, controller);
      expect(status?.k0sVersion).toBe(TO);
    });
  });

  test('a Plan without id and timestamp has the uid as id, and its generation in the second rollout', async () => {
    const at = scene();
    const targets = { controllers: listed(controller), workers: listed(worker) };
    const { metadata } = await at.client.create(plans, {
      apiVersion: 'autopilot.k0sproject.io/v1beta2',
      kind: 'Plan',
      metadata: { name: 'autopilot' },
      spec: { commands: [at.forced(targets)] },
    });
    const uid = metadata.uid ?? '';
    expect(uid).not.toBe('');
    await at.ends('Completed');
    expect(at.statusesOf(worker, uid).at(-1)).toBe('Completed');
    const statesOfFirst = at.seen.states.length;

    const platforms = { 'linux-amd64': { url: at.url(TO) } };
    const command = { k0supdate: { version: TO, platforms, targets } };
    await at.until(async () => {
      const plan = await at.plan();
      await at.client.replace(plans, { ...plan, spec: { commands: [command] } });
    });
    await at.until(() => expect(at.seen.states.length).toBeGreaterThan(statesOfFirst));
    const second = await at.ends('Completed');
    expect(second.spec.id).toBeUndefined();
    expect(at.statusesOf(worker, `${uid}-g2`).at(-1)).toBe('Completed');
  });
});
