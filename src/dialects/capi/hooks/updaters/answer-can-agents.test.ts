/** Tests which changes are accepted for Nodes whose agents cannot carry them out. */
import { describe, expect, test } from 'vitest';
import { refusal } from '../../../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../../../test/support/builders/nodes.ts';
import {
  FILER,
  FILES,
  filesPatch,
  leftBy,
  presence,
  REFIT,
  Scene,
} from '../../../../../test/support/capi/can-update.ts';
import { captured } from '../../../../../test/support/capi/captured.ts';
import { buildTriple } from '../../../../../test/support/capi/triples.ts';
import { later } from '../../../../../test/support/clock/times.ts';
import { machines } from '../../../../api/capi/machine.ts';
import { type Updater, updaterSets } from '../../../../api/refit/updater-set.ts';
import { nodes } from '../../../../kube/resources.ts';
import { encodePresence } from '../../../../signal/agent-presence.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from '../../../../signal/names.ts';

describe('a node without an agent of Refit', () => {
  const small = [
    buildTriple({ machine: { version: 'v1.35.0' } }),
    buildTriple({ machine: { version: 'v1.35.1' } }),
  ] as const;
  const aside = {
    [AGENT_ANNOTATION]: encodePresence({ version: '1.0.0', since: later(0), aside: true }),
  };

  function sceneWith(
    updaters: readonly Updater[],
    annotations: Record<string, string>,
    others = {},
  ): Scene {
    const scene = new Scene({ filer: filesPatch }, updaters);
    for (const [name, node] of Object.entries({ m1: 'w1', ...others })) {
      scene.api.put(machines, {
        metadata: { name, namespace: 'default' },
        status: { nodeRef: { name: node } },
      });
      scene.api.put(
        nodes,
        buildNode(node, { annotations: name === 'm1' ? annotations : presence }),
      );
    }
    return scene;
  }

  test.each([
    ['none', {}],
    ["k0s's own", aside],
  ])(
    '%s: the version is not accepted, and the answer names the node',
    async (_name, annotations) => {
      const scene = sceneWith([REFIT], annotations);
      scene.api.remove(updaterSets, 'all');
      const answer = await scene.ask('CanUpdateMachine', ...small);
      expect(answer.message).toBe('covers nothing: node w1 has no agent of Refit');
      expect(answer.machinePatch).toBeUndefined();
      scene.api.put(nodes, buildNode('w1', { annotations: presence }));
      expect(leftBy(await scene.ask('CanUpdateMachine', ...small), ...small)).toEqual([]);
    },
  );

  test('one that lives, but has no room: the version is not accepted either', async () => {
    const heartbeat = JSON.stringify({ at: later(0), room: 1000, since: later(0) });
    const scene = sceneWith([REFIT], { ...presence, [HEARTBEAT_ANNOTATION]: heartbeat });
    scene.api.remove(updaterSets, 'all');
    const answer = await scene.ask('CanUpdateMachine', ...small);
    expect(answer.message).toMatch(/^covers nothing: node w1 has 0 MiB free/);
    expect(answer.machinePatch).toBeUndefined();
  });

  test('one of the Machines of a MachineSet, unless it is being deleted', async () => {
    const { request } = captured('canupdatemachineset');
    const scene = sceneWith([REFIT], {}, { m2: 'w2' });
    scene.api.remove(updaterSets, 'all');
    const ask = async () =>
      await scene.ask('CanUpdateMachineSet', request.current, request.desired);
    expect((await ask()).message).toBe('covers nothing: node w1 has no agent of Refit');
    const deletionTimestamp = later(0);
    scene.api.change(machines, 'm1', (old) => ({
      ...old,
      metadata: { ...old.metadata, deletionTimestamp },
    }));
    expect((await ask()).message).toMatch(/^covers machine.spec.version/);
  });

  test('is not guessed where Machines of two clusters have the labels of one MachineSet', async () => {
    const { request } = captured('canupdatemachineset');
    const scene = sceneWith([REFIT], presence, { m2: 'w2' });
    scene.api.remove(updaterSets, 'all');
    expect(
      (await scene.ask('CanUpdateMachineSet', request.current, request.desired)).message,
    ).toMatch(/^covers mach/);
    scene.api.change(machines, 'm2', (machine) => ({ ...machine, spec: { clusterName: 'other' } }));
    await expect(
      scene.ask('CanUpdateMachineSet', request.current, request.desired),
    ).rejects.toThrow('Machines of several clusters have the label machine-template-hash=');
  });

  test('has joined a moment ago: no answer, or Cluster API would replace all Machines', async () => {
    const scene = sceneWith([REFIT], {});
    scene.api.remove(updaterSets, 'all');
    scene.api.put(nodes, buildNode('w1', { creationTimestamp: later(-200_000) }));
    const young = 'node w1 has no agent of Refit yet';
    await expect(scene.ask('CanUpdateMachine', ...small)).rejects.toThrow(young);
    scene.api.put(nodes, buildNode('w1', { creationTimestamp: later(-400_000) }));
    expect((await scene.ask('CanUpdateMachine', ...small)).message).toContain(
      'w1 has no agent of Refit',
    );
  });

  test.each([
    ['has just been made: no answer', -200_000, 'Error: the Machine has no Node yet'],
    ['is older: Cluster API replaces it', -400_000, 'covers nothing: the Machine has no Node'],
  ])('a Machine without a Node that %s', async (_what, age, said) => {
    const scene = sceneWith([REFIT], presence);
    scene.api.remove(updaterSets, 'all');
    scene.api.put(machines, {
      metadata: { name: 'm1', namespace: 'default', creationTimestamp: later(age) },
    });
    const asked = scene.ask('CanUpdateMachine', ...small);
    expect(await asked.then(({ message }) => message, String)).toBe(said);
  });

  test('with an UpdaterSet it counts as an updater that does not answer', async () => {
    await expect(sceneWith([REFIT], {}).ask('CanUpdateMachine', ...small)).rejects.toThrow(
      'waiting for updater refit: node w1 has no agent of Refit',
    );
    const skipped = sceneWith([{ ...REFIT, onUnavailable: 'Skip' }], {});
    expect((await skipped.ask('CanUpdateMachine', ...small)).message).toBe(
      'covers nothing; not covered: machine.spec.version; no answer from refit: node w1 has no agent of Refit',
    );
  });

  test('does not matter where the version stays', async () => {
    const files = [
      buildTriple({ bootstrap: {} }),
      buildTriple({ bootstrap: { files: FILES } }),
    ] as const;
    const answer = await sceneWith([FILER, REFIT], {}).ask('CanUpdateMachine', ...files);
    expect(leftBy(answer, ...files)).toEqual([]);
  });

  test('is not guessed while the API server of the Nodes is away', async () => {
    const scene = sceneWith([REFIT], presence);
    scene.api.remove(updaterSets, 'all');
    scene.api.before('list nodes', () => {
      throw refusal(503, 'ServiceUnavailable');
    });
    await expect(scene.ask('CanUpdateMachine', ...small)).rejects.toThrow('ServiceUnavailable');
  });
});
