/** Chooses the plan that a control is for: the named one, or the only possible one. */
import { isFinal } from '../../engine/model/recorded.ts';
import { RefitError } from '../../util/errors.ts';
import type { Inspection } from '../status/observe.ts';

/**
 * `named` is `<kind>/<name>`, `<dialect>/<name>`, `<dialect>/<namespace>/<name>` or a name alone; the case of
 * a kind does not matter. Without it: the only plan that has not ended, else the one created last.
 *
 * @throws RefitError REFIT_USAGE with the candidates if there are several, REFIT_CONTROL if there is none
 */
export function choosePlan(plans: readonly Inspection[], named: string | undefined): Inspection {
  const matching = named === undefined ? plans : plans.filter((each) => namesOf(each).includes(lowered(named)));
  const open = matching.filter(({ snapshot }) => !isFinal(snapshot.rollout));
  const candidates = open.length > 0 ? open : newest(matching);
  const [chosen, second] = candidates;
  if (!chosen) throw new RefitError('REFIT_CONTROL', none(plans, named));
  if (!second) return chosen;
  const choice = candidates.map(refOf).toSorted().join(', ');
  const hint = 'name one of them with --plan';
  throw new RefitError('REFIT_USAGE', `several plans are possible: ${choice}`, { hint });
}

/** As in `status.covers` of an UpgradePolicy. */
function refOf({ dialect, plan: { metadata } }: Inspection): string {
  const { namespace, name } = metadata;
  return [dialect.name, namespace, name].filter((part) => part !== undefined).join('/');
}

/** For some dialects people see another kind and name than those of the object. */
function namesOf(inspection: Inspection): string[] {
  const { dialect, plan, snapshot } = inspection;
  const { source } = snapshot.rollout;
  const names = [...new Set([plan.metadata.name, source.name])];
  const heads = [source.kind, dialect.plans.kind, dialect.name];
  return [refOf(inspection), ...names, ...heads.flatMap((head) => names.map((name) => `${head}/${name}`))].map(lowered);
}

function lowered(text: string): string {
  const [head, ...rest] = text.split('/');
  return rest.length === 0 ? text : [head?.toLowerCase(), ...rest].join('/');
}

function newest(plans: readonly Inspection[]): Inspection[] {
  const created = ({ snapshot }: Inspection): number => Date.parse(snapshot.rollout.source.created);
  const last = Math.max(...plans.map(created));
  return plans.filter((each) => created(each) === last);
}

function none(plans: readonly Inspection[], named: string | undefined): string {
  if (plans.length === 0) return 'there is no plan';
  return `there is no plan ${named}; there is ${plans.map(refOf).toSorted().join(', ')}`;
}
