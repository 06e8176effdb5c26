/**
 * Tests five scenarios of k0s on three controllers and three workers: ap-platformselect, ap-quorum, ap-quorumsafety,
 * ap-selector and ap-ha3x3.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PlanCommand } from '../../../src/api/autopilot/plan.ts';
import { leases, nodes } from '../../../src/kube/resources.ts';
import { controlNodes } from '../../../src/signal/names.ts';
import { listed, selected } from '../../support/builders/plans.ts';
import { greatestOverlap } from '../../support/expectations/motion.ts';
import { WHOLE } from '../../support/whole.ts';
import { forbiddenIn } from '../audit.ts';
import { PAIRS, type Scene, TO, targetsIn, useScene } from './scene.ts';

const CONTROLLERS = ['controller1', 'controller2', 'controller3'];
const WORKERS = ['worker1', 'worker2', 'worker3'];
const completed = (...names: string[]): string[] => names.map((name) => `${name} SignalCompleted`);

/**
 * The scenarios that do not run with every pair. Each of them runs with Refit alone. With every other pair, only one of
 * them runs.
 */
const SHARED = ['ap-ha3x3', 'ap-platformselect', 'ap-quorum', 'ap-selector'];

describe.each(PAIRS.map((pair, index) => [...pair, index] as const))(
  '%s',
  (_name, combination, index) => {
    const isOurs = combination.leader === 'refit' && combination.agents === 'refit';
    const plays = (name: string): boolean =>
      WHOLE || isOurs || SHARED[index % SHARED.length] === name;
    const scene = useScene(combination, { controllers: 3, workers: 3 });

    /**
     * Checks that only the named hosts were restarted during `act`, and that two controllers were never down at the
     * same time.
     */
    async function played(
      act: (scene: Scene) => Promise<void>,
      restarted: readonly string[],
    ): Promise<void> {
      const before = startsOf(scene());
      await act(scene());
      const after = startsOf(scene());
      expect(Object.keys(after).filter((name) => after[name] !== before[name])).toEqual(restarted);
      const down = scene()
        .seen.outages.intervals()
        .filter(({ name }) => CONTROLLERS.includes(name));
      expect(greatestOverlap(down)).toBe(1);
    }

    const startsOf = (at: Scene): Record<string, number> =>
      Object.fromEntries([...CONTROLLERS, ...WORKERS].map((name) => [name, at.host(name).starts]));

    if (plays('ap-platformselect'))
      test('ap-platformselect: of three platforms the right binary is chosen', async () => {
        await played(
          async (at) => {
            const url = 'http://127.0.0.1:9/none';
            const command = at.forced({ controllers: listed('controller1') });
            Object.assign(command.k0supdate?.platforms ?? {}, {
              'windows-amd64': { url },
              'linux-arm64': { url },
            });
            await at.create('platformselect', command);
            expect(targetsIn(await at.ends('Completed'))).toEqual(completed('controller1'));
          },
          ['controller1'],
        );
      });

    if (plays('ap-quorum'))
      test('ap-quorum: three controllers are updated one after the other, and no worker', async () => {
        await played(async (at) => {
          await at.create('quorum', at.forced({ controllers: listed(...CONTROLLERS) }));
          expect(targetsIn(await at.ends('Completed'))).toEqual(completed(...CONTROLLERS));
        }, CONTROLLERS);
      });

    if (plays('ap-selector'))
      test('ap-selector: labels and fields together select exactly one controller and one worker', async () => {
        await played(
          async (at) => {
            const labels = { metadata: { labels: { foo: 'bar' } } };
            for (const name of ['controller1', 'controller2'])
              await at.client.patch(controlNodes, name, labels, { type: 'merge' });
            for (const name of ['worker2', 'worker3'])
              await at.client.patch(nodes, name, labels, { type: 'merge' });
            const controllers = selected('foo=bar', 'metadata.name=controller1');
            const workers = selected('foo=bar', 'metadata.name=worker2');
            await at.create('selector', at.forced({ controllers, workers }));
            expect(targetsIn(await at.ends('Completed'))).toEqual(
              completed('controller1', 'worker2'),
            );
          },
          ['controller1', 'worker2'],
        );
      });

    const isOld = combination.leader === '<=1.34';

    describe('ap-quorumsafety, with controller3 down', () => {
      const update = (at: Scene): PlanCommand => at.forced({ controllers: listed(...CONTROLLERS) });
      const statuses = (): string[] =>
        CONTROLLERS.flatMap((name) => scene().statusesOf(name, 'safety'));
      beforeEach(async () => await scene().host('controller3').stop());
      afterEach(async () => await scene().host('controller3').resume());

      if (isOld) {
        test('differs: the plan ends as InconsistentTargets, no node is signalled, and only another plan continues', async () => {
          await scene().create('safety', update(scene()));
          await scene().ends('InconsistentTargets');
          await scene().host('controller3').resume();
          expect(statuses()).toEqual([]);
          await scene().deletePlan();
          await scene().create('safety-2', update(scene()));
          expect(targetsIn(await scene().ends('Completed'))).toEqual(completed(...CONTROLLERS));
          expect(statuses()).toEqual([]);
        });
      } else {
        test('while a controller is down, no node is signalled and the plan stays Schedulable', async () => {
          const from = scene().seen.states.length;
          await scene().create('safety', update(scene()));
          await scene().until(() => expect(scene().seen.states.at(-1)).toBe('Schedulable'));
          const asked = await readyzAsked();
          await scene().until(async () =>
            expect(await readyzAsked()).toBeGreaterThanOrEqual(
              asked + 3 * (CONTROLLERS.length - 1),
            ),
          );
          expect(statuses()).toEqual([]);
          await scene().host('controller3').resume();
          const plan = await scene().ends('Completed');
          expect(targetsIn(plan)).toEqual(completed(...CONTROLLERS));
          expect(CONTROLLERS.map((name) => scene().statusesOf(name, 'safety').at(-1))).toEqual(
            CONTROLLERS.map(() => 'Completed'),
          );
          expect(new Set(scene().seen.states.slice(from))).toEqual(
            new Set(['', 'SchedulableWait', 'Schedulable', 'Completed']),
          );
        });
      }
    });

    if (plays('ap-ha3x3'))
      test('ap-ha3x3: all nodes run the new version and keep their identity', async () => {
        await played(
          async (at) => {
            const platforms = { 'linux-amd64': { url: at.url(TO) } };
            const targets = { controllers: listed(...CONTROLLERS), workers: listed(...WORKERS) };
            for (const name of combination.agents === 'k0s' ? WORKERS : [])
              await nameHolder(at, name);
            await at.create('ha3x3', { k0supdate: { version: TO, platforms, targets } });
            expect(targetsIn(await at.ends('Completed'))).toEqual(
              completed(...CONTROLLERS, ...WORKERS),
            );
            for (const name of [...CONTROLLERS, ...WORKERS])
              expect(await at.host(name).version()).toBe(TO);
            for (const name of WORKERS) {
              const { status, spec } = await at.client.get(nodes, name);
              expect(status?.conditions).toContainEqual(
                expect.objectContaining({ type: 'Ready', status: 'True' }),
              );
              expect(spec?.unschedulable).toBeUndefined();
              const lease = await at.client.get(leases, name, { namespace: 'kube-node-lease' });
              expect(lease.spec?.holderIdentity).toBe(name);
            }
          },
          [...CONTROLLERS, ...WORKERS],
        );
      });

    test('no process requested more than its documented rights', async () => {
      expect(forbiddenIn(await scene().audited('"forbid"'))).toEqual([]);
    });

    async function readyzAsked(): Promise<number> {
      return (await scene().audited('/readyz')).filter(({ requestURI }) =>
        requestURI.startsWith('/readyz'),
      ).length;
    }
  },
);

/** Writes the holder into the Lease of a Node, as a kubelet does. Stand-ins of k0s have no kubelet. */
async function nameHolder(at: Scene, name: string): Promise<void> {
  const namespace = 'kube-node-lease';
  await at.client.patch(
    leases,
    name,
    { spec: { holderIdentity: name } },
    { type: 'merge', namespace },
  );
}
