/** Shows how the changes of a Machine are divided among updaters, and what happens with what is left. */
import { describe, expect, test } from 'vitest';
import { fitting } from '../../../../../sandbox/cluster/hook-schema.ts';
import { MemoryApi, refusal } from '../../../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../../../test/support/builders/nodes.ts';
import {
  buildUpdater,
  buildUpdaterSet,
} from '../../../../../test/support/builders/updater-sets.ts';
import { captured } from '../../../../../test/support/capi/captured.ts';
import { buildNodeCluster } from '../../../../../test/support/capi/node-cluster.ts';
import { buildTriple, jsonPatch, mergePatch } from '../../../../../test/support/capi/triples.ts';
import { FakeClock } from '../../../../../test/support/clock/fake-clock.ts';
import { later, T0 } from '../../../../../test/support/clock/times.ts';
import type { CanUpdateResponse, Patches, Triple } from '../../../../api/capi/hooks.ts';
import {
  CONTROL_PLANE_LABEL,
  type Machine,
  machineDeployments,
  machines,
} from '../../../../api/capi/machine.ts';
import { type Updater, updaterSets } from '../../../../api/refit/updater-set.ts';
import { annotated, nodes } from '../../../../kube/resources.ts';
import { encodePresence } from '../../../../signal/agent-presence.ts';
import { AGENT_ANNOTATION, HEARTBEAT_ANNOTATION } from '../../../../signal/names.ts';
import { silentLogger } from '../../../../util/log.ts';
import { untilAborted } from '../../../../util/waits.ts';
import type { NodeCluster } from '../../plan/progress.ts';
import { changesBetween, MACHINE_SHAPE, nameOf, SET_SHAPE } from '../can-update.ts';
import { type CanHook, canUpdate } from './answer-can.ts';
import { applyPatches } from './hook-patch.ts';

const presence = { [AGENT_ANNOTATION]: encodePresence({ version: '1.0.0', since: later(0) }) };

type Answer = Patches | Error | 'nothing';
interface Asked {
  readonly updater: string;
  readonly current: Triple;
}

class Scene {
  readonly api = new MemoryApi();
  readonly asked: Asked[] = [];
  readonly #answers: Readonly<Record<string, Answer>>;

  constructor(
    answers: Readonly<Record<string, Answer>>,
    updaters: readonly Updater[],
    spec: object = {},
  ) {
    this.#answers = answers;
    this.api.put(updaterSets, buildUpdaterSet('all', updaters, spec));
    this.api.put(machines, {
      metadata: { name: 'm1', namespace: 'default' },
      status: { nodeRef: { name: 'n1' } },
    });
    this.api.put(nodes, {
      ...buildNode('n1', { annotations: presence }),
      status: { nodeInfo: { kubeletVersion: 'v1.35.0' } },
    });
    this.api.put(machineDeployments, { metadata: { name: 'md', namespace: 'default' } });
  }

  /** Each has the same Nodes here. */
  readonly clusters = new Map<string | undefined, NodeCluster>();

  clusterOf(name: string | undefined): NodeCluster {
    return this.clusters.getOrInsertComputed(name, () => buildNodeCluster(this.api.client));
  }

  async ask(
    hook: CanHook,
    current: Triple,
    desired: Triple,
    settings = {},
    withinMs = 60_000,
  ): Promise<CanUpdateResponse> {
    const parts = {
      abort: new AbortController().signal,
      management: this.api.client,
      clusterOf: ({ spec }: Machine) => this.clusterOf(spec?.clusterName),
      clock: new FakeClock(T0),
      log: silentLogger,
      callUpdater: async ({ name }: Updater, _hook: string, body: object, abort: AbortSignal) => {
        const { current: from } = body as { current: Triple };
        this.asked.push({ updater: name, current: from });
        const answer = this.#answers[name] ?? {};
        if (answer === 'nothing')
          return await untilAborted(Promise.withResolvers<never>().promise, abort);
        if (answer instanceof Error) return await Promise.reject(answer);
        return { status: 'Success', ...answer } as const;
      },
    };
    const request = { current, desired, settings };
    const answer = await canUpdate(parts, hook, request, withinMs);
    return fitting(`${hook}Response`, answer);
  }
}

const FILES = [{ path: '/etc/demo', content: 'two' }];
const current = buildTriple({
  machine: { version: 'v1.35.0', providerID: 'x' },
  infra: { cpu: 2, disk: { size: 1 } },
  bootstrap: { format: 'cloud-config' },
});
const desired = buildTriple({
  machine: { version: 'v1.35.1', providerID: 'x' },
  infra: { cpu: 4 },
  bootstrap: { format: 'cloud-config', files: FILES },
});
const filesPatch = { bootstrapConfigPatch: mergePatch({ spec: { files: FILES } }) };
const infraPatch = {
  infrastructureMachinePatch: jsonPatch(
    { op: 'replace', path: '/spec/cpu', value: 4 },
    { op: 'remove', path: '/spec/disk' },
  ),
};
const REFIT: Updater = { name: 'refit', refit: {} };
const FILER = buildUpdater('filer');
const SIZER = buildUpdater('sizer');

function leftBy(answer: CanUpdateResponse, from = current, to = desired): string[] {
  return changesBetween(MACHINE_SHAPE, applyPatches(MACHINE_SHAPE, from, answer), to).map(nameOf);
}

describe('three updaters', () => {
  test('each is asked about what the ones before it leave, and together they cover all', async () => {
    const scene = new Scene({ filer: filesPatch, sizer: infraPatch }, [FILER, REFIT, SIZER]);
    const answer = await scene.ask('CanUpdateMachine', current, desired);
    expect(answer.message).toBe(
      'covers bootstrap.spec.files (filer); machine.spec.version (refit); infraMachine.spec.cpu, infraMachine.spec.disk (sizer); leaves nothing',
    );
    expect(leftBy(answer)).toEqual([]);
    const last = scene.asked.at(-1)?.current as Triple;
    expect(changesBetween(MACHINE_SHAPE, last, desired).map(nameOf)).toEqual([
      'infraMachine.spec.cpu',
      'infraMachine.spec.disk',
    ]);
  });

  test('nobody is asked once nothing is left', async () => {
    const all = {
      machinePatch: mergePatch({ spec: { version: 'v1.35.1' } }),
      ...filesPatch,
      ...infraPatch,
    };
    const scene = new Scene({ filer: all }, [FILER, SIZER]);
    expect(leftBy(await scene.ask('CanUpdateMachine', current, desired))).toEqual([]);
    expect(scene.asked.map(({ updater }) => updater)).toEqual(['filer']);
  });

  test('only updaters whose selector has the labels are asked', async () => {
    const other = { ...FILER, selector: { matchLabels: { pool: 'gpu' } } };
    const scene = new Scene({ filer: filesPatch, sizer: infraPatch }, [other, REFIT, SIZER]);
    const answer = await scene.ask('CanUpdateMachine', current, desired);
    expect(answer.message).toContain('leaves bootstrap.spec.files');
    expect(scene.asked.map(({ updater }) => updater)).toEqual(['sizer']);
  });

  test('the captured templates of a MachineSet are covered by two updaters', async () => {
    const { request, exampleResponse } = captured('canupdatemachineset');
    const { machineSetPatch: _version, ...others } = exampleResponse as CanUpdateResponse;
    const scene = new Scene({ filer: others }, [REFIT, FILER]);
    const answer = await scene.ask('CanUpdateMachineSet', request.current, request.desired);
    const patched = applyPatches(SET_SHAPE, request.current, answer);
    expect(changesBetween(SET_SHAPE, patched, request.desired)).toEqual([]);
  });
});

describe('what no updater covers', () => {
  test('is left to Cluster API, which replaces the Machine: no patch at all', async () => {
    const scene = new Scene({ sizer: infraPatch }, [REFIT, SIZER]);
    const answer = await scene.ask('CanUpdateMachine', current, desired);
    expect(Object.keys(answer)).toEqual(['apiVersion', 'kind', 'status', 'message']);
    expect(answer.message).toContain('leaves bootstrap.spec.files');
  });

  test('with Refuse nothing is accepted and nothing replaced: the call fails', async () => {
    const scene = new Scene({ sizer: infraPatch }, [REFIT, SIZER], { uncovered: 'Refuse' });
    await expect(scene.ask('CanUpdateMachine', current, desired)).rejects.toThrow(
      /^UpdaterSet all: refused, because it covers .*; leaves bootstrap.spec.files$/,
    );
  });

  test('with Ask it waits until somebody approves the replacement of this Machine, and then leaves it to Cluster API', async () => {
    const scene = new Scene({ sizer: infraPatch }, [REFIT, SIZER], { uncovered: 'Ask' });
    const approve = (...approved: string[]): void =>
      scene.api.change(updaterSets, 'all', (set) => ({
        ...set,
        status: { ...set.status, approved },
      }));
    for (const others of [
      [],
      ['Machine default/m2'],
      ['Machine default/m11', 'Machine other/m1'],
    ]) {
      approve(...others);
      await expect(scene.ask('CanUpdateMachine', current, desired)).rejects.toThrow(
        /^UpdaterSet all: waits for approval, because it covers .*; leaves bootstrap.spec.files; to have it replaced: refit approve machine\/m1 --namespace default$/,
      );
    }
    expect(scene.api.calls).toContain('patch updatersets/all');
    approve('Machine default/m2', 'Machine default/m1');
    const answer = await scene.ask('CanUpdateMachine', current, desired);
    expect(answer).toMatchObject({
      status: 'Success',
      message: expect.stringContaining('leaves bootstrap.spec.files'),
    });
    expect(leftBy(answer)).toHaveLength(4);
  });
});

test("with Ask a name that is none is in no command: it is the caller's, and somebody runs that in a shell", async () => {
  const scene = new Scene({ sizer: infraPatch }, [SIZER], { uncovered: 'Ask' });
  const named = ({ machine, ...rest }: Triple): Triple => ({
    ...rest,
    machine: { ...machine, metadata: { name: "m'; id; '" } },
  });
  const asked = scene.ask('CanUpdateMachine', named(current), named(desired));
  await expect(asked).rejects.toThrow(
    `UpdaterSet all: refused, because "Machine default/m'; id; '" names no object, such as Machine prod/cp-1`,
  );
});

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
      'covers nothing; leaves machine.spec.version; no answer from refit: node w1 has no agent of Refit',
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

describe('an updater that does not answer', () => {
  const gone = new Error('no answer from sizer.example.com');
  const version = { machine: { version: 'v1.35.0' } };
  const small = [buildTriple(version), buildTriple({ machine: { version: 'v1.35.1' } })] as const;

  test.each(['Skip', 'Wait'] as const)(
    '%s: the others cover everything, so nothing waits',
    async (onUnavailable) => {
      const scene = new Scene({ sizer: gone }, [{ ...SIZER, onUnavailable }, REFIT]);
      const answer = await scene.ask('CanUpdateMachine', ...small);
      expect(leftBy(answer, ...small)).toEqual([]);
      expect(answer.message).toContain('no answer from sizer: no answer from sizer.example.com');
    },
  );

  test('Refuse: nothing is accepted, although the others cover everything', async () => {
    const scene = new Scene({ sizer: gone }, [{ ...SIZER, onUnavailable: 'Refuse' }, REFIT]);
    await expect(scene.ask('CanUpdateMachine', ...small)).rejects.toThrow(
      'waiting for updater sizer',
    );
  });

  test('by default nothing is replaced while it may cover what is left', async () => {
    const scene = new Scene({ sizer: gone, filer: filesPatch }, [SIZER, FILER, REFIT]);
    await expect(scene.ask('CanUpdateMachine', current, desired)).rejects.toThrow(
      'waiting for updater sizer',
    );
  });

  test('Skip: what is left counts as uncovered', async () => {
    const scene = new Scene({ sizer: gone, filer: filesPatch }, [
      { ...SIZER, onUnavailable: 'Skip' },
      FILER,
      REFIT,
    ]);
    expect(leftBy(await scene.ask('CanUpdateMachine', current, desired))).toHaveLength(4);
  });
});

test('an updater that keeps still does not use the time of the others', async () => {
  const scene = new Scene({ sizer: 'nothing' }, [{ ...SIZER, onUnavailable: 'Skip' }, REFIT]);
  const [from, to] = ['v1.35.0', 'v1.35.1'].map((version) =>
    buildTriple({ machine: { version } }),
  ) as [Triple, Triple];
  const answer = await scene.ask('CanUpdateMachine', from, to, {}, 200);
  expect(leftBy(answer, from, to)).toEqual([]);
  expect(answer.message).toContain('no answer from sizer: ');
});

describe('patches that are not believed', () => {
  test.each<[string, Patches, string]>([
    [
      'another value than desired',
      { machinePatch: mergePatch({ spec: { version: 'v9.9.9' } }) },
      'machine.spec.version',
    ],
    [
      'a field that nobody changes',
      { machinePatch: mergePatch({ spec: { providerID: 'mine' } }) },
      'machine.spec.providerID',
    ],
    [
      'a field that is not there',
      { bootstrapConfigPatch: mergePatch({ spec: { users: [] } }) },
      'bootstrap.spec.users',
    ],
    [
      'part of a list',
      { bootstrapConfigPatch: mergePatch({ spec: { files: [] } }) },
      'bootstrap.spec.files',
    ],
    [
      'a missing place',
      { infrastructureMachinePatch: jsonPatch({ op: 'remove', path: '/spec/x' }) },
      'Value required at path: ',
    ],
  ])('%s: counts as no answer', async (_name, patches, reason) => {
    const scene = new Scene({ sizer: patches }, [SIZER, REFIT]);
    await expect(scene.ask('CanUpdateMachine', current, desired)).rejects.toThrow(
      new RegExp(`waiting for updater sizer: .*${reason}`),
    );
  });

  test('many values, which each operation would copy: refused at once, in few words', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, index) => [`k${index}`, index]),
    );
    const scene = new Scene({ sizer: { bootstrapConfigPatch: mergePatch({ spec: many }) } }, [
      SIZER,
      REFIT,
    ]);
    await expect(scene.ask('CanUpdateMachine', current, desired)).rejects.toThrow(
      'its patch has more than 5000 values',
    );
  });

  test('long and unprintable names: told in few words', async () => {
    const scene = new Scene(
      {
        sizer: {
          bootstrapConfigPatch: mergePatch({ spec: { [`\u001b[2J${'x'.repeat(10_000)}`]: 1 } }),
        },
      },
      [SIZER, REFIT],
    );
    const refused = scene.ask('CanUpdateMachine', current, desired);
    await expect(refused).rejects.toThrow(
      /waiting for updater sizer: its patches set other values than desired/,
    );
    const { message } = (await refused.catch((error: unknown) => error)) as Error;
    expect(message.length).toBeLessThan(500);
    expect(message).not.toContain('\u001b');
  });

  test('outside of the spec nothing is taken over', async () => {
    const patch = mergePatch({ metadata: { labels: { mine: 'yes' } }, status: { ready: true } });
    const scene = new Scene({ sizer: { ...infraPatch, machinePatch: patch }, filer: filesPatch }, [
      SIZER,
      FILER,
      REFIT,
    ]);
    const answer = await scene.ask('CanUpdateMachine', current, desired);
    const patched = applyPatches(MACHINE_SHAPE, current, answer);
    expect(patched['machine']?.metadata).toEqual(current['machine']?.metadata);
  });
});

describe('UpdaterSets', () => {
  test('without one for the Machine, Refit answers alone', async () => {
    const scene = new Scene({}, [SIZER], { selector: { matchLabels: { pool: 'gpu' } } });
    const answer = await scene.ask('CanUpdateMachine', current, desired);
    expect(answer.message).toMatch(/^covers machine.spec.version; leaves /);
    expect(scene.asked).toEqual([]);
  });

  test('the new labels of a MachineSet choose, since its Machines have them when they are updated', async () => {
    const { request } = captured('canupdatemachineset');
    const { machineSet, ...others } = request.desired as {
      machineSet: { spec: { template: object } };
    } & Triple;
    const { spec } = machineSet;
    const template = { ...spec.template, metadata: { labels: { pool: 'gpu' } } };
    const relabelled = {
      ...others,
      machineSet: { ...machineSet, spec: { ...spec, template } },
    } as unknown as Triple;
    const scene = new Scene({}, [SIZER], { selector: { matchLabels: { pool: 'gpu' } } });
    await scene.ask('CanUpdateMachineSet', request.current, relabelled);
    expect(scene.asked.map(({ updater }) => updater)).toEqual(['sizer']);
  });

  test('two for one Machine: refused, with both names', async () => {
    const scene = new Scene({}, [SIZER]);
    scene.api.put(updaterSets, buildUpdaterSet('more', [REFIT]));
    await expect(scene.ask('CanUpdateMachine', current, desired)).rejects.toThrow(
      'UpdaterSets all and more are both for these labels',
    );
  });

  test('in-place updates disabled by a setting: nobody is asked', async () => {
    const scene = new Scene({ sizer: infraPatch }, [SIZER]);
    const answer = await scene.ask('CanUpdateMachine', current, desired, {
      disableInPlaceUpdates: 'true',
    });
    expect(answer.message).toContain('disabled by the setting');
    expect(scene.asked).toEqual([]);
  });
});

describe('a version that breaks a rule', () => {
  function sceneOf(kubelet: string, labels: Record<string, string> = {}): Scene {
    const scene = new Scene({}, [REFIT]);
    scene.api.remove(updaterSets, 'all');
    scene.api.put(machines, {
      metadata: { name: 'm1', namespace: 'default', labels },
      status: { nodeRef: { name: 'w1' } },
    });
    const node = buildNode('w1', { annotations: presence });
    scene.api.put(nodes, {
      ...node,
      status: { ...node.status, nodeInfo: { kubeletVersion: kubelet } },
    });
    return scene;
  }
  const change = (from: string, to: string, labels = {}): [Triple, Triple] => {
    const triple = (version: string): Triple => {
      const { machine, ...rest } = buildTriple({ machine: { version } });
      return {
        ...rest,
        machine: { ...machine, metadata: { name: 'm1', ...machine?.metadata, labels } },
      };
    };
    return [triple(from), triple(to)];
  };
  const AHEAD =
    'would have a kubelet of v1.37.0, newer than the API server of the cluster (v1.36.3)';

  test.each([
    [
      'skips a minor version',
      'v1.34.2',
      'v1.36.0',
      'w1 would go from v1.34.2 past 1.35 to v1.36.0',
      'SkippedMinor',
    ],
    ['is lower', 'v1.36.2', 'v1.36.1', 'w1 would go from v1.36.2 down to v1.36.1', 'Downgrade'],
    [
      'is lower, of k0s',
      'v1.36.2+k0s',
      'v1.36.1+k0s.0',
      'w1 would go from v1.36.2+k0s down to v1.36.1+k0s.0',
      'Downgrade',
    ],
    ['is ahead of the API server', 'v1.36.2', 'v1.37.0', `w1 ${AHEAD}`, 'KubeletAhead'],
  ])(
    '%s: it is not accepted, unless a setting lifts the rule',
    async (_name, from, to, why, rule) => {
      const scene = sceneOf(from);
      const refused = await scene.ask('CanUpdateMachine', ...change(from, to));
      const lifts = 'the setting allowedVersionRules lifts rules by their names';
      expect(refused.message).toBe(`covers nothing: ${why} (rule ${rule}); ${lifts}`);
      expect(refused.machinePatch).toBeUndefined();
      const lifted = await scene.ask('CanUpdateMachine', ...change(from, to), {
        allowedVersionRules: `Other, ${rule}`,
      });
      expect(leftBy(lifted, ...change(from, to))).toEqual([]);
    },
  );

  test.each([
    ['fake', 'its version fake is unreadable'],
    ['', 'its version  is unreadable'],
  ])('a kubelet that says %j: the claim says what was not checked', async (kubelet, why) => {
    const scene = sceneOf(kubelet);
    const answer = await scene.ask('CanUpdateMachine', ...change('v1.36.2', 'v1.36.3'));
    expect(answer.message).toBe(
      `covers machine.spec.version; leaves nothing; without a check of the version rules: w1: ${why}`,
    );
    expect(answer.machinePatch).toBeDefined();
  });

  test('an UpdaterSet says it too', async () => {
    const scene = sceneOf('fake');
    scene.api.put(updaterSets, buildUpdaterSet('all', [REFIT], {}));
    const answer = await scene.ask('CanUpdateMachine', ...change('v1.36.2', 'v1.36.3'));
    expect(answer.message).toContain('(refit); leaves nothing; without a check of the version');
  });

  test.each([
    ['refused', 'covers nothing: node w1: the host has cgroup v1, which the kubelet of v1.36.3'],
    ['allowed', 'covers machine.spec.version'],
  ] as const)('a host on cgroup v1, which its kubelet has %s', async (cgroupV1, wanted) => {
    const scene = sceneOf('v1.36.2');
    const told = encodePresence({ version: '1.0.0', since: later(0), cgroupV1 });
    scene.api.change(nodes, 'w1', (node) => annotated(node, { [AGENT_ANNOTATION]: told }));
    const answer = await scene.ask('CanUpdateMachine', ...change('v1.36.2', 'v1.36.3'));
    expect(answer.message).toContain(wanted);
  });

  test('the control plane goes ahead of its API servers', async () => {
    const labels = { [CONTROL_PLANE_LABEL]: '' };
    const change37 = change('v1.36.2', 'v1.37.0', labels);
    const answer = await sceneOf('v1.36.2', labels).ask('CanUpdateMachine', ...change37);
    expect(leftBy(answer, ...change37)).toEqual([]);
  });

  test('is not ruled out while the API server does not tell its own', async () => {
    const scene = sceneOf('v1.36.2');
    scene.api.version = '';
    const asked = scene.ask('CanUpdateMachine', ...change('v1.36.2', 'v1.36.3'));
    await expect(asked).rejects.toThrow(
      'the API server of the Nodes does not tell its version at /version',
    );
  });

  test('the kubelet counts, not what the Machine wanted before', async () => {
    const scene = sceneOf('v1.34.2');
    const { message } = await scene.ask('CanUpdateMachine', ...change('v1.35.0', 'v1.36.0'));
    expect(message).toContain('(rule SkippedMinor)');
  });
});
