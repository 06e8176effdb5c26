/**
 * Checks the operators of databases, volumes and virtual machines that act when a node is cordoned or drained, and whether
 * their settings let a drain end.
 */
import { keyOf, type PodDisruptionBudget } from '../../kube/resources.ts';
import { messageOf } from '../../util/errors.ts';
import { isRecord } from '../../util/json.ts';
import { counted, listed } from '../../util/phrases.ts';
import type { Asking } from '../asking.ts';
import type { Check } from '../context.ts';
import { type FoundBy, grouped } from '../finding.ts';
import { CLOUDNATIVE_PG } from '../operators/cloudnative-pg.ts';
import { KUBEVIRT } from '../operators/kubevirt.ts';
import { LONGHORN } from '../operators/longhorn.ts';
import {
  type Custom,
  type Judge,
  type Operator,
  type Problem,
  slim,
  unclear,
} from '../operators/operator.ts';
import { ROOK } from '../operators/rook.ts';
import { ZALANDO } from '../operators/zalando.ts';

const OPERATORS: readonly Operator[] = [CLOUDNATIVE_PG, ZALANDO, LONGHORN, KUBEVIRT, ROOK];

export const checkOperators: Check = async (asking) => {
  const all = await Promise.all(OPERATORS.map(async (each) => await askOperator(asking, each)));
  const findings = all.flat();
  if (findings.length > 0) return findings;
  return [{ state: 'ok', message: 'no operator that acts on a cordon was found' }];
};

/**
 * Resolves with a function that returns true for a budget of a running operator. Such a budget allows no eviction until its
 * operator has seen the cordon, so only the check of operators can judge it.
 */
export async function budgetsOfOperators({
  list,
}: Pick<Asking, 'list'>): Promise<(budget: PodDisruptionBudget) => boolean> {
  const present = await Promise.all(
    OPERATORS.map(async ({ resource, keeps }) => {
      if (keeps === undefined) return [];
      const asked = await list(resource, { slim });
      // A budget without its object is a leftover of an operator that is gone.
      return [keeps(asked.kind === 'answer' ? asked.value : undefined)];
    }),
  );
  const kept = present.flat();
  return (budget) => kept.some((keeps) => keeps(budget));
}

async function askOperator(
  { list, get }: Asking,
  { name, noun, resource, expect, judgeOf }: Operator,
): Promise<FoundBy[]> {
  const asked = await list(resource, { slim });
  if (asked.kind === 'unknown') return [{ state: 'unknown', message: asked.why }];
  const { length } = asked.value;
  if (length === 0) return [];
  const judge = await judgeOf({ list, get }, asked.value);
  const found = asked.value.flatMap((object) => {
    const problem = judged(object, judge);
    return problem === undefined ? [] : [{ ...problem, object: keyOf(object) }];
  });
  const problems = grouped(found, (names) => `${resource.kind} ${listed(names)}`);
  return [...problems, { state: 'ok', message: `${name} has ${counted(length, noun)}; ${expect}` }];
}

/** Judges one object. Whatever it has in its fields, the other objects are judged, too. */
function judged({ metadata, spec = {}, status = {} }: Custom, judge: Judge): Problem | undefined {
  if (!isRecord(spec)) return unclear('whether it holds a drain: its spec is no object');
  if (!isRecord(status)) return unclear('whether it holds a drain: its status is no object');
  try {
    return judge({ metadata, spec, status });
  } catch (error) {
    return unclear(`whether it holds a drain: its fields cannot be read: ${messageOf(error)}`);
  }
}
