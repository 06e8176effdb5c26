/**
 * Says which fields of an UpgradePolicy have an effect on the plans of a dialect. Each dialect gives its effects for every
 * field, so a new field without an entry does not compile.
 */
import type { UpgradePolicySpec } from '../../api/refit/upgrade-policy.ts';
import { listed } from '../../util/phrases.ts';

/** The fields whose own fields have effects of their own. */
const PARTED = ['deadlines', 'drain', 'versions', 'payloads', 'agents', 'edits'] as const;
type Parted = (typeof PARTED)[number];
type Wave = NonNullable<UpgradePolicySpec['waves']>[number];

/** A field of `spec`, such as `soak`, `drain.force` or `waves[].settle`. */
export type PolicyField =
  | Exclude<keyof UpgradePolicySpec, Parted>
  | { [P in Parted]: `${P}.${keyof NonNullable<UpgradePolicySpec[P]> & string}` }[Parted]
  | `waves[].${Exclude<keyof Wave, 'selector' | 'count' | 'percent'>}`;

/**
 * The effect of a field on the plans of one dialect. `why` is a clause that says why the field has no effect, or only a part
 * of it, and what counts instead.
 */
export type FieldEffect =
  | { readonly kind: 'works' }
  | { readonly kind: 'partly'; readonly why: string }
  | { readonly kind: 'none'; readonly why: string };

export const WORKS: FieldEffect = { kind: 'works' };

export function noEffect(why: string): FieldEffect {
  return { kind: 'none', why };
}

export function inPart(why: string): FieldEffect {
  return { kind: 'partly', why };
}

export type PolicyEffects = Readonly<Record<PolicyField, FieldEffect>>;

/** The fields whose default is `true`. A policy sets such a field if it is `false`. */
const TRUE_BY_DEFAULT: readonly string[] = [
  'drain.enabled',
  'drain.deleteEmptyDirData',
  'drain.force',
  'drain.softTaint',
] satisfies readonly PolicyField[];

/** Returns the names of the members that are set to something else than their default, each after the prefix. */
function setIn(prefix: string, members: object = {}): string[] {
  return Object.entries(members).flatMap(([name, value]) => {
    const field = `${prefix}${name}`;
    return value === undefined || value === TRUE_BY_DEFAULT.includes(field) ? [] : [field];
  });
}

/** Returns the fields that the policy sets. A field with its default, which is `false` or `true`, counts as absent. */
export function fieldsSetIn(spec: UpgradePolicySpec): PolicyField[] {
  const { waves = [], ...others } = spec;
  const ofOthers = setIn('', others).flatMap((field) => {
    const parted = PARTED.find((each) => each === field);
    return parted === undefined ? [field] : setIn(`${parted}.`, spec[parted]);
  });
  const ofWaves = new Set(
    waves.flatMap(({ selector: _selector, count: _count, percent: _percent, ...rest }) =>
      setIn('waves[].', rest),
    ),
  );
  const all = [...ofOthers, ...(waves.length === 0 ? [] : ['waves']), ...ofWaves];
  // The schema of the policy has no other fields.
  return all as PolicyField[];
}

/**
 * Returns one sentence for each reason why fields that the policy sets have no effect, or only a part of it, on the plans of
 * a dialect.
 */
export function missingEffects(
  spec: UpgradePolicySpec,
  dialect: string,
  effects: PolicyEffects,
): string[] {
  const lacking = fieldsSetIn(spec).flatMap((field) => {
    const effect = effects[field];
    return effect.kind === 'works' ? [] : [{ field: `spec.${field}`, effect }];
  });
  const alike = Map.groupBy(lacking, ({ effect }) => `${effect.kind} ${effect.why}`);
  return [...alike.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const names = listed(group.map(({ field }) => field));
    const { kind, why } = first.effect;
    const verb = group.length === 1 ? 'has' : 'have';
    const what = kind === 'none' ? `${verb} no effect` : `${verb} only a part of the effect`;
    return [`${names} ${what} on plans of ${dialect}: ${why}`];
  });
}
