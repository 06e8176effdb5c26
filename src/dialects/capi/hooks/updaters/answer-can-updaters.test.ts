/** Tests which changes several updaters cover together, and what happens to the changes that they do not cover. */
import { describe, expect, test, vi } from 'vitest';
import { refusal } from '../../../../../test/support/builders/memory-api.ts';
import {
  buildUpdater,
  buildUpdaterSet,
} from '../../../../../test/support/builders/updater-sets.ts';
import {
  current,
  desired,
  FILER,
  FILES,
  filesPatch,
  leftBy,
  REFIT,
  Scene,
} from '../../../../../test/support/capi/can-update.ts';
import { captured } from '../../../../../test/support/capi/captured.ts';
import { buildTriple, jsonPatch, mergePatch } from '../../../../../test/support/capi/triples.ts';
import type { CanUpdateResponse, Patches, Triple } from '../../../../api/capi/hooks.ts';
import { updaterSets } from '../../../../api/refit/updater-set.ts';
import { silentLogger } from '../../../../util/log.ts';
import { changesBetween, MACHINE_SHAPE, nameOf, SET_SHAPE } from '../can-update.ts';
import { applyPatches } from './hook-patch.ts';

const infraPatch = {
  infrastructureMachinePatch: jsonPatch(
    { op: 'replace', path: '/spec/cpu', value: 4 },
    { op: 'remove', path: '/spec/disk' },
  ),
};

const SIZER = buildUpdater('sizer');

describe('three updaters', () => {
  test('Refit asks each updater about the changes that earlier updaters leave, and together they cover all', async () => {
    const scene = new Scene({ filer: filesPatch, sizer: infraPatch }, [FILER, REFIT, SIZER]);
    const answer = await scene.ask('CanUpdateMachine', current, desired);
    expect(answer.message).toBe(
      'covers bootstrap.spec.files (filer); machine.spec.version (refit); infraMachine.spec.cpu, infraMachine.spec.disk (sizer); not covered: nothing',
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
    expect(answer.message).toContain('not covered: bootstrap.spec.files');
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

describe('availability', () => {
  const QUIET = { affectsAvailability: false };
  const withoutVersion = buildTriple({
    machine: { version: 'v1.35.0', providerID: 'x' },
    infra: { cpu: 4 },
    bootstrap: { format: 'cloud-config', files: FILES },
  });

  test.each<[string, object, object, false | undefined]>([
    [
      'a Machine stays available if every updater with a change reports affectsAvailability false',
      QUIET,
      QUIET,
      false,
    ],
    ['is affected if one of them does not say so', QUIET, {}, undefined],
    ['is affected if one of them says so', QUIET, { affectsAvailability: true }, undefined],
  ])('%s', async (_name, filer, sizer, wanted) => {
    const answers = { filer: { ...filesPatch, ...filer }, sizer: { ...infraPatch, ...sizer } };
    const scene = new Scene(answers, [FILER, REFIT, SIZER]);
    const answer = await scene.ask('CanUpdateMachine', current, withoutVersion);
    expect(leftBy(answer)).toHaveLength(1);
    expect(answer.affectsAvailability).toBe(wanted);
  });

  test('a new version affects availability, also if another updater covers it, because Refit drains the node', async () => {
    const all = {
      machinePatch: mergePatch({ spec: { version: 'v1.35.1' } }),
      ...filesPatch,
      ...infraPatch,
      ...QUIET,
    };
    const scene = new Scene({ filer: all }, [FILER, REFIT]);
    const answer = await scene.ask('CanUpdateMachine', current, desired);
    expect(leftBy(answer)).toEqual([]);
    expect(answer.affectsAvailability).toBeUndefined();
  });
});

describe('what no updater covers', () => {
  test('a change that no updater covers gets no patch, and Cluster API replaces the Machine', async () => {
    const scene = new Scene({ sizer: infraPatch }, [REFIT, SIZER]);
    const answer = await scene.ask('CanUpdateMachine', current, desired);
    expect(Object.keys(answer)).toEqual(['apiVersion', 'kind', 'status', 'message']);
    expect(answer.message).toContain('not covered: bootstrap.spec.files');
  });

  test('with Refuse, a change that no updater covers fails the call, and nothing is replaced', async () => {
    const scene = new Scene({ sizer: infraPatch }, [REFIT, SIZER], { uncovered: 'Refuse' });
    await expect(scene.ask('CanUpdateMachine', current, desired)).rejects.toThrow(
      /^UpdaterSet all: refused, because it covers .*; not covered: bootstrap.spec.files$/,
    );
  });

  test.each(['Refuse', 'Ask'] as const)(
    '%s matters only where something is left',
    async (uncovered) => {
      const answers = { filer: filesPatch, sizer: infraPatch };
      const scene = new Scene(answers, [FILER, REFIT, SIZER], { uncovered });
      expect(leftBy(await scene.ask('CanUpdateMachine', current, desired))).toEqual([]);
    },
  );

  test('with Ask it waits also where nobody has approved anything yet', async () => {
    const scene = new Scene({ sizer: infraPatch }, [REFIT, SIZER], { uncovered: 'Ask' });
    scene.api.change(updaterSets, 'all', (set) => ({ ...set, status: { conditions: [] } }));
    await expect(scene.ask('CanUpdateMachine', current, desired)).rejects.toThrow(
      'UpdaterSet all: waits for approval',
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
        /^UpdaterSet all: waits for approval, because it covers .*; not covered: bootstrap.spec.files; to approve the replacement, run: refit approve machine\/m1 --namespace default$/,
      );
    }
    expect(scene.api.calls).toContain('patch updatersets/all/status');
    approve('Machine default/m2', 'Machine default/m1');
    const answer = await scene.ask('CanUpdateMachine', current, desired);
    expect(answer).toMatchObject({
      status: 'Success',
      message: expect.stringContaining('not covered: bootstrap.spec.files'),
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
    `UpdaterSet all: refused, because "Machine default/m'; id; '" names no object; it must name an object, for example Machine prod/cp-1`,
  );
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

  test('each has its own policy, whatever the first of them has', async () => {
    const scene = new Scene({ sizer: gone, filer: filesPatch }, [
      { ...FILER, onUnavailable: 'Skip' },
      SIZER,
      REFIT,
    ]);
    await expect(scene.ask('CanUpdateMachine', current, desired)).rejects.toThrow(
      'waiting for updater sizer',
    );
  });

  test.each([
    [{ status: 'Failure', message: 'no disk' } as const, 'no disk'],
    [{ status: 'Failure' } as const, 'it answered Failure without a message'],
  ])('is one that answers %j', async (failure, reason) => {
    const scene = new Scene({ sizer: failure }, [{ ...SIZER, onUnavailable: 'Skip' }, REFIT]);
    const answer = await scene.ask('CanUpdateMachine', ...small);
    expect(leftBy(answer, ...small)).toEqual([]);
    expect(answer.message).toContain(`no answer from sizer: ${reason}`);
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

test('nine tenths of the time are shared by the updaters that are still to be asked', async () => {
  const timeout = vi.spyOn(AbortSignal, 'timeout');
  try {
    const scene = new Scene({ filer: filesPatch, sizer: infraPatch }, [FILER, REFIT, SIZER]);
    await scene.ask('CanUpdateMachine', current, desired, {}, 60_000);
    expect(timeout.mock.calls).toEqual([[18_000], [27_000], [54_000]]);
  } finally {
    timeout.mockRestore();
  }
});

test('a status of the UpdaterSet that cannot be written is logged, and changes no answer', async () => {
  const scene = new Scene({ sizer: infraPatch }, [REFIT, SIZER], { uncovered: 'Refuse' });
  const told: unknown[] = [];
  scene.log = { ...silentLogger, warn: (...words) => void told.push(words) };
  scene.api.before('patch updatersets', () => {
    throw refusal(403, 'Forbidden');
  });
  await expect(scene.ask('CanUpdateMachine', current, desired)).rejects.toThrow(
    'UpdaterSet all: refused',
  );
  expect(told).toEqual([
    [
      'cannot write the status of the UpdaterSet',
      { updaterSet: 'all', reason: expect.objectContaining({ message: expect.any(String) }) },
    ],
  ]);
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
      /waiting for updater sizer: its patches set values that differ from the desired ones for bootstrap/,
    );
    const { message } = (await refused.catch((error: unknown) => error)) as Error;
    expect(message.length).toBeLessThan(500);
    expect(message).not.toContain('\u001b');
  });

  test('many names: the message has five of them', async () => {
    const spec = Object.fromEntries(Array.from({ length: 7 }, (_, index) => [`k${index}`, 1]));
    const scene = new Scene({ sizer: { bootstrapConfigPatch: mergePatch({ spec }) } }, [SIZER]);
    await expect(scene.ask('CanUpdateMachine', current, desired)).rejects.toThrow(
      /differ from the desired ones for bootstrap.spec.k0, bootstrap.spec.k1, bootstrap.spec.k2, bootstrap.spec.k3, bootstrap.spec.k4$/,
    );
  });

  test('an empty value of a Machine is none, as for Cluster API', async () => {
    const empty = { machinePatch: mergePatch({ spec: { readinessGates: [] } }), ...infraPatch };
    const scene = new Scene({ filer: filesPatch, sizer: empty }, [FILER, REFIT, SIZER]);
    expect(leftBy(await scene.ask('CanUpdateMachine', current, desired))).toEqual([]);
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
    expect(answer.message).toMatch(/^covers machine.spec.version; not covered: /);
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
