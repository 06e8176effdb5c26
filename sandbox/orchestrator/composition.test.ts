/** Proves that each updater gets only the changes that it can make, in order. */
import { array, assert, asyncProperty, nat, record, tuple } from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Patches, Triple } from '../../src/api/capi/hooks.ts';
import { applyPatches } from '../../src/dialects/capi/can-update.ts';
import { changesBetween, MACHINE_SHAPE, nameOf } from '../../src/dialects/capi/compared-fields.ts';
import { writePatch } from '../../src/dialects/capi/patch.ts';
import { anyObject } from '../../test/capi/arbitrary-json.ts';
import { captured } from '../../test/capi/captured.ts';
import { buildTriple, jsonPatch, mergePatch, type Specs } from '../../test/capi/triples.ts';
import { type Candidate, type Composition, compose, desiredAt } from './composition.ts';

/** Takes every change whose name passes, by honest patches. */
function able(name: string, takes: (change: string) => boolean): Candidate {
  return {
    name,
    async canUpdate(current, desired) {
      const changes = changesBetween(MACHINE_SHAPE, current, desired).filter((change) => takes(nameOf(change)));
      const patches = MACHINE_SHAPE.parts.flatMap((part) => {
        const own = changes.filter((change) => change.part === part);
        const rooted = own.map((change) => ({ ...change, path: ['spec', ...change.path] }));
        return own.length === 0 ? [] : [[part.patch, writePatch(current[part.object], rooted)] as const];
      });
      return await Promise.resolve({ status: 'Success', ...(Object.fromEntries(patches) as Patches) });
    },
  };
}

/** Answers these patches, whatever it is asked. */
function blunt(name: string, patches: Patches): Candidate {
  return { name, canUpdate: async () => await Promise.resolve({ status: 'Success', ...patches }) };
}

const FROM: Specs = {
  machine: { version: 'v1.35.0', providerID: 'p' },
  infra: { size: 1 },
  bootstrap: { files: ['a'] },
};
const TO: Specs = { machine: { version: 'v1.35.1', providerID: 'p' }, infra: { size: 2 }, bootstrap: { files: ['b'] } };
const [current, desired] = [buildTriple(FROM), buildTriple(TO)];
const [VERSION, SIZE, FILES] = ['machine.spec.version', 'infraMachine.spec.size', 'bootstrap.spec.files'];

const versions = able('versions', (change) => change === VERSION);
const sizes = able('sizes', (change) => change === SIZE);
const files = able('files', (change) => change === FILES);
const everything = able('everything', () => true);
const nothing = able('nothing', () => false);

const told = ({ steps, uncovered, rejected }: Composition): string[] => [
  ...steps.map(({ updater, claimed }) => `${updater}: ${claimed.join(' ')}`),
  ...uncovered.map((name) => `nobody: ${name}`),
  ...rejected.map(({ updater, reason }) => `${updater} rejected: ${reason}`),
];

describe('who does what', () => {
  test.each<[string, Candidate[], string[]]>([
    ['one can do all', [everything], [`everything: ${VERSION} ${SIZE} ${FILES}`]],
    ['three together', [versions, sizes, files], [`versions: ${VERSION}`, `sizes: ${SIZE}`, `files: ${FILES}`]],
    ['in another order', [files, versions, sizes], [`files: ${FILES}`, `versions: ${VERSION}`, `sizes: ${SIZE}`]],
    [
      'what is taken already is not taken again',
      [versions, everything],
      [`versions: ${VERSION}`, `everything: ${SIZE} ${FILES}`],
    ],
    ['who comes too late is not asked', [everything, versions], [`everything: ${VERSION} ${SIZE} ${FILES}`]],
    ['who can do nothing makes no step', [nothing, everything, nothing], [`everything: ${VERSION} ${SIZE} ${FILES}`]],
    ['something is left', [versions, sizes], [`versions: ${VERSION}`, `sizes: ${SIZE}`, `nobody: ${FILES}`]],
    ['nobody at all', [], [`nobody: ${VERSION}`, `nobody: ${SIZE}`, `nobody: ${FILES}`]],
  ])('%s', async (_name, claimants, wanted) => {
    expect(told(await compose(current, desired, claimants))).toEqual(wanted);
  });

  test('nothing to do asks nobody', async () => {
    const never: Candidate = { name: 'never', canUpdate: async () => await Promise.reject(new Error('asked')) };
    expect(told(await compose(desired, desired, [never]))).toEqual([]);
  });

  test('the reference, as it was captured, can do all of it', async () => {
    const { request, exampleResponse } = captured('canupdatemachine-1');
    const { uncovered, rejected } = await compose(request.current, request.desired, [
      blunt('reference', exampleResponse),
    ]);
    expect({ uncovered, rejected }).toEqual({ uncovered: [], rejected: [] });
  });
});

test.each<[string, Patches, string]>([
  [
    'another value',
    { machinePatch: mergePatch({ spec: { version: 'v9.9.9' } }) },
    'its patches set other values than desired for machine.spec.version',
  ],
  [
    'a field beside',
    { machinePatch: mergePatch({ spec: { version: 'v1.35.1', extra: 1 } }) },
    'its patches set other values than desired for machine.spec.extra',
  ],
  [
    'a field that is ignored',
    { machinePatch: mergePatch({ spec: { providerID: 'q' } }) },
    'its patches set other values than desired for machine.spec.providerID',
  ],
  [
    'a removal',
    { infrastructureMachinePatch: jsonPatch({ op: 'remove', path: '/spec/size' }) },
    'its patches set other values than desired for infraMachine.spec.size',
  ],
  [
    'a place that is not there',
    { bootstrapConfigPatch: jsonPatch({ op: 'remove', path: '/spec/x' }) },
    'its patches cannot be applied: "x" does not exist',
  ],
  ['no patch at all', { machinePatch: { patchType: 'JSONPatch', patch: 'AA==' } }, 'its patches cannot be applied: '],
])('an updater that sets %s is not believed, and the next one is asked', async (_name, patches, reason) => {
  const { steps, rejected, uncovered } = await compose(current, desired, [blunt('liar', patches), everything]);
  expect(steps.map(({ updater }) => updater)).toEqual(['everything']);
  expect(rejected).toEqual([{ updater: 'liar', reason: expect.stringContaining(reason) as string }]);
  expect(uncovered).toEqual([]);
});

test('what a patch changes outside the spec is dropped, as by every caller', async () => {
  const patch = mergePatch({ metadata: { labels: { a: 'b' } }, spec: { version: 'v1.35.1' } });
  const { steps } = await compose(current, desired, [blunt('b', { machinePatch: patch }), sizes, files]);
  expect(desiredAt(current, desired, steps, 0)['machine']?.metadata).toEqual(current['machine']?.metadata);
});

test('each step is asked for what it and those before it do, and the last for the whole', async () => {
  const { steps } = await compose(current, desired, [files, versions, sizes]);
  const asked = steps.map((_, index) => desiredAt(current, desired, steps, index));
  expect(asked).toEqual([
    buildTriple({ ...FROM, bootstrap: TO.bootstrap ?? null }),
    buildTriple({ ...FROM, bootstrap: TO.bootstrap ?? null, machine: TO.machine ?? null }),
    desired,
  ]);
});

const triple = record({ machine: anyObject, infra: anyObject, bootstrap: anyObject }).map(buildTriple);
/** Able to take what hashes into its share; shares overlap and leave gaps. */
const claimant = tuple(nat(6), nat(6)).map(([from, to]) =>
  able(`${from}-${to}`, (change) => {
    const share = Buffer.from(change).reduce((sum, byte) => sum + byte, 0) % 7;
    return share >= from && share <= to;
  }),
);

describe('for any two Machines and any updaters', () => {
  test('updaters that can do nothing change nothing, wherever they stand', async () => {
    const foreignTargets = array(nat(8), { maxLength: 3 });
    await assert(
      asyncProperty(
        triple,
        triple,
        array(claimant, { maxLength: 4 }),
        foreignTargets,
        async (from, to, able, places) => {
          const more = places.reduce((list, place) => list.toSpliced(place % (list.length + 1), 0, nothing), able);
          expect(await compose(from, to, more)).toEqual(await compose(from, to, able));
        },
      ),
    );
  });

  test('all steps together make what is desired, each change by one of them; what is left is named', async () => {
    await assert(
      asyncProperty(triple, triple, array(claimant, { maxLength: 4 }), async (from, to, able) => {
        const { steps, uncovered } = await compose(from, to, able);
        const all = changesBetween(MACHINE_SHAPE, from, to).map(nameOf);
        expect([...steps.flatMap(({ claimed }) => claimed), ...uncovered].toSorted()).toEqual(all.toSorted());
        let reached: Triple = from;
        for (const { updater } of steps) {
          const answer = await able.find(({ name }) => name === updater)?.canUpdate(reached, to);
          reached = applyPatches(MACHINE_SHAPE, reached, answer ?? {});
        }
        expect(changesBetween(MACHINE_SHAPE, reached, to).map(nameOf)).toEqual(uncovered);
      }),
    );
  });

  test('the requests of the steps grow, and lead to what is desired', async () => {
    await assert(
      asyncProperty(triple, triple, array(claimant, { maxLength: 4 }), async (from, to, able) => {
        const { steps } = await compose(from, to, [...able, everything]);
        const left = steps.map(
          (_, index) => changesBetween(MACHINE_SHAPE, desiredAt(from, to, steps, index), to).length,
        );
        const owed = steps.map((_, index) => steps.slice(index + 1).flatMap(({ claimed }) => claimed).length);
        expect(left).toEqual(owed);
      }),
    );
  });
});
