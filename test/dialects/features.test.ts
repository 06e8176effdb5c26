/** Tests that the columns of the table of features say what the scenes of all dialects show. */
import { describe, expect, test } from 'vitest';
import { WORKS } from '../../src/engine/policy/policy-effects.ts';
import { allFeatures } from '../../tools/reference/features.ts';
import { type Cell, cellOf, DIALECT_COLUMNS } from '../../tools/reference/features-by-dialect.ts';
import { ALL_DIALECTS } from './clusters/all.ts';
import { TABLE } from './scenes/table.ts';
import type { DialectUnderTest } from './world.ts';

const SCENES = 'test/dialects/dialects.test.ts';

/** Returns what the scenes show of the feature with this number in a dialect; undefined if no scene is about it. */
function shownByScenes(number: number, dialect: DialectUnderTest): Cell['state'] | undefined {
  const scenes = TABLE.filter(({ features }) => features.includes(number));
  if (scenes.length === 0) return undefined;
  const effects = scenes.map(({ fields = [], instead }) => {
    const found = fields.map((field) => dialect.module.policyEffects[field]);
    const none = found.find(({ kind }) => kind === 'none');
    if (none !== undefined) return instead?.[dialect.name] ? WORKS : none;
    return found.find(({ kind }) => kind === 'partly') ?? WORKS;
  });
  if (effects.every(({ kind }) => kind === 'works')) return 'yes';
  return effects.every(({ kind }) => kind === 'none') ? 'no' : 'partly';
}

describe.each(ALL_DIALECTS)('$name', (dialect) => {
  test('the table of features says of each feature what the scenes show', () => {
    const wrong = allFeatures().flatMap((feature, index) => {
      const shown = shownByScenes(index + 1, dialect);
      const { state } = cellOf(feature, dialect.module.name);
      return shown === undefined || shown === state
        ? []
        : [`${index + 1} ${feature.name}: ${state} in the table, ${shown} in the scenes`];
    });
    expect(wrong).toEqual([]);
  });

  test('the column of the dialect has the name under which the scenes are played', () => {
    expect(DIALECT_COLUMNS[dialect.module.name]).toBe(dialect.name);
  });
});

test('a feature names the scenes as its evidence exactly if a scene shows it', () => {
  const shown = new Set(TABLE.flatMap(({ features }) => features));
  const wrong = allFeatures().flatMap(({ name, evidence }, index) =>
    evidence.includes(SCENES) === shown.has(index + 1) ? [] : [`${index + 1} ${name}`],
  );
  expect(wrong).toEqual([]);
});

test('a scene is about features that this release has', () => {
  const numbers = TABLE.flatMap(({ features }) => features);
  expect(numbers.filter((number) => allFeatures()[number - 1]?.state !== 'yes')).toEqual([]);
});
