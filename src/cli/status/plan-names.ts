/** Compares plans with the names and filters of a command line. */
import type { Dialect } from '../../engine/contract/dialect.ts';
import { planRefOf } from '../../engine/contract/plan-objects.ts';
import { planReference } from '../../engine/model/plan-reference.ts';
import type { Snapshot } from '../../engine/model/snapshot.ts';
import type { KubeObject } from '../../kube/resources.ts';

/** Selects plans. Each field that is set must match. */
export interface PlanFilter {
  readonly namespace?: string | undefined;
  readonly plan?: string | undefined;
  readonly dialect?: string | undefined;
}

interface Named {
  readonly dialect: Pick<Dialect, 'name' | 'plans' | 'planObjects'>;
  readonly plan: KubeObject;
  readonly snapshot: { readonly rollout: Pick<Snapshot['rollout'], 'source'> };
}

export function isKept(subject: Named, { namespace, plan, dialect }: PlanFilter): boolean {
  return (
    (namespace === undefined || namespaceOf(subject) === namespace) &&
    (dialect === undefined || subject.dialect.name === dialect) &&
    (plan === undefined || isNamed(subject, plan))
  );
}

/** Returns the namespace of a plan as people see it; undefined if it has none. For an update of a Machine, this is the namespace of the Machine. */
function namespaceOf({ plan, snapshot }: Named): string | undefined {
  const { name } = snapshot.rollout.source;
  const slash = name.lastIndexOf('/');
  return plan.metadata.namespace ?? (slash === -1 ? undefined : name.slice(0, slash));
}

/**
 * Returns true if `named` is a name of this plan. This is the name alone, or with `<kind>/`,
 * `<dialect>/`, `<dialect>/<namespace>/` or `<namespace>/` before it.
 */
export function isNamed(subject: Named, named: string): boolean {
  return namesOf(subject).includes(lowered(named));
}

/** Returns true if `named` is a name of a plan that an output shows, in one of the forms of `isNamed`. */
export function isShownAs(
  {
    dialect,
    kind,
    namespace,
    name,
  }: {
    readonly dialect: string;
    readonly kind: string;
    readonly namespace?: string | undefined;
    readonly name: string;
  },
  named: string,
): boolean {
  const places = namespace === undefined ? [] : [namespace, `${dialect}/${namespace}`];
  const heads = [dialect, kind, ...places];
  return [name, ...heads.map((head) => `${head}/${name}`)].map(lowered).includes(lowered(named));
}

/** Returns the reference of a plan, in the form that `status.covers` of an UpgradePolicy has. */
export function refOf({ dialect, plan }: Pick<Named, 'dialect' | 'plan'>): string {
  return planReference(planRefOf(dialect, plan));
}

/** Returns the reference with the name that the output for people shows. For an update of a Machine, this is the name of the Machine. */
export function shownRefOf({ dialect, plan, snapshot }: Named): string {
  const { namespace } = plan.metadata;
  return planReference({ dialect: dialect.name, namespace, name: snapshot.rollout.source.name });
}

/**
 * Returns the message for a filter that matches no plan. It says what the filter asks for, and
 * which plans exist. A plan without a snapshot is named as its object is.
 */
export function noPlan(
  plans: readonly (Pick<Named, 'dialect' | 'plan'> & Partial<Pick<Named, 'snapshot'>>)[],
  filter: PlanFilter = {},
): string {
  const { namespace, plan, dialect } = filter;
  const asked = [
    plan === undefined ? '' : ` ${plan || '""'}`,
    dialect === undefined ? '' : ` of dialect ${dialect}`,
    namespace === undefined ? '' : ` in namespace ${namespace || '""'}`,
  ];
  const existing = plans.map(({ snapshot, ...each }) =>
    snapshot === undefined ? refOf(each) : shownRefOf({ ...each, snapshot }),
  );
  const others = plans.length === 0 ? '' : `; there is ${existing.toSorted().join(', ')}`;
  return `there is no plan${asked.join('')}${others}`;
}

/** Returns all names by which a user may call the plan. Some dialects show another kind and name than those of the object. */
function namesOf(subject: Named): string[] {
  const { dialect, plan, snapshot } = subject;
  const { source } = snapshot.rollout;
  // The shown name of a Machine has the namespace before it.
  const alone = source.name.slice(source.name.lastIndexOf('/') + 1);
  const names = [...new Set([plan.metadata.name, source.name, alone])];
  const { namespace = [] } = plan.metadata;
  const heads = [source.kind, dialect.plans.kind, dialect.name, namespace].flat();
  return [
    refOf(subject),
    ...names,
    ...heads.flatMap((head) => names.map((name) => `${head}/${name}`)),
  ].map(lowered);
}

function lowered(text: string): string {
  const [head, ...rest] = text.split('/');
  return rest.length === 0 ? text : [head?.toLowerCase(), ...rest].join('/');
}
