/**
 * Tests that what people are told is true in the states of small clusters, and that planted untruths are found. The
 * counts stand in docs/internals/truth.md.
 */
import { expect, test } from 'vitest';
import { withTable } from '../model/safety-page.ts';
import { LARGE_TOLD, SMALL_TOLD } from './model-configurations.ts';
import { TOLD_INVARIANTS } from './model-invariants.ts';
import { KNOWN } from './model-known.ts';
import { TOLD_MISTAKES } from './model-mistakes.ts';
import { knownRows, readTruthPage, toldInvariantRows, visitRow } from './model-page.ts';
import { statesOf, type Visit, type Visited, visit } from './model-visit.ts';

const REFRESH = 'docs/internals/truth.md is older than the code: npm run safety writes it anew';

const explored = new Map<string, Promise<Visited[]>>();

/** Returns the small configuration with this name, and its states. They are explored once. */
async function statesNamed(name: string) {
  const configuration = SMALL_TOLD.find((each) => each.name === name);
  if (configuration === undefined) throw new Error(`no small configuration is named ${name}`);
  const states = await explored.getOrInsertComputed(
    name,
    async () => await statesOf(configuration),
  );
  return { configuration, states };
}

const visited = new Map<string, Promise<Visit>>();

/** Returns what is told in all states of the small configuration. They are judged once. */
async function visitNamed(name: string): Promise<Visit> {
  return await visited.getOrInsertComputed(name, async () => {
    const { configuration, states } = await statesNamed(name);
    return visit(configuration, states);
  });
}

/** A planted untruth is told in many states, so a sample of the renderings is enough to find it. */
const SAMPLE = 3;

test.each(SMALL_TOLD)('what is told is true in each state: $name', async ({ name }) => {
  const result = await visitNamed(name);
  const untruths = result.untruths.filter(({ knownRow }) => knownRow === undefined);
  expect(untruths.map(({ invariant, sentence }) => `${invariant}: ${sentence}`)).toEqual([]);
  expect(readTruthPage().split('\n'), REFRESH).toContain(visitRow(name, result));
});

test.each(TOLD_MISTAKES)('a planted untruth is found: $name', async (mistake) => {
  const { configuration, states } = await statesNamed(mistake.configuration);
  const { untruths } = visit(configuration, states, {
    surfaces: mistake.surfaces,
    each: SAMPLE,
  });
  const found = untruths.filter(({ knownRow }) => knownRow === undefined);
  expect(found.map(({ invariant }) => invariant)).toContain(mistake.breaks);
});

test('each invariant of what is told is broken by a planted untruth', () => {
  const broken = new Set(TOLD_MISTAKES.map(({ breaks }) => breaks));
  expect(TOLD_INVARIANTS.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual([]);
});

test('each known untruth is still told: an entry for a mended one must go', async () => {
  const told = new Set<string>();
  for (const { name } of SMALL_TOLD) {
    const { untruths } = await visitNamed(name);
    for (const { invariant, knownRow } of untruths) told.add(`${invariant}: ${knownRow}`);
  }
  const mended = KNOWN.filter(({ invariant, row }) => !told.has(`${invariant}: ${row}`));
  expect(mended.map(({ row }) => row)).toEqual([]);
});

test('docs/internals/truth.md has each invariant, each known untruth and each visited cluster', () => {
  const page = readTruthPage();
  const tables = withTable(
    withTable(page, 'told-invariants', toldInvariantRows()),
    'known-untruths',
    knownRows(),
  );
  expect(tables, REFRESH).toBe(page);
  const missing = [...SMALL_TOLD, ...LARGE_TOLD].filter(
    ({ name }) => !page.includes(`| ${name} |`),
  );
  expect(missing.map(({ name }) => name)).toEqual([]);
});
