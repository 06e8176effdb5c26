/** Checks whether the processes of Refit in the cluster have the rights that their manifests give them. */
import { isFinished } from '../drain/pods.ts';
import { type KubeObject, type Pod, pods } from '../kube/resources.ts';
import { counted, listed } from '../util/phrases.ts';
import type { AccessQuestion } from './access.ts';
import { type Asking, answer, type ReadResult } from './asking.ts';
import type { Check } from './context.ts';
import type { FoundBy } from './finding.ts';
import { accountOf, ownComponentOf, slimPod } from './pods.ts';

/** A rule of a Role or a ClusterRole. */
export interface RightsRule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
  readonly verbs: readonly string[];
}

/** The rights of a component of Refit. */
export interface ComponentRights {
  /** The name of the component in the label `app.kubernetes.io/component` of its pods. */
  readonly component: string;
  /** The ServiceAccount to which the manifests bind the rights. The cluster may use another one. */
  readonly account: string;
  /** The namespace of the component in the manifests. The cluster may use another one. */
  readonly namespace: string;
  /** The command that prints the manifests with the rights. */
  readonly command: string;
  /** The manifests of the component. */
  readonly manifests: readonly KubeObject[];
}

interface Role extends KubeObject {
  readonly rules?: readonly RightsRule[];
}

interface Binding extends KubeObject {
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly { readonly kind: string; readonly name: string }[];
}

const MOST_NAMED = 6;

interface Account {
  readonly namespace: string;
  readonly name: string;
}

/** Loads the rights of the components. It reads all manifests, which takes a while. */
export type LoadRights = () => Promise<readonly ComponentRights[]>;

/** Returns a check of the rights of the components, as far as they run as pods. Loads the rights only if a pod does. */
export function rightsCheck(load: LoadRights): Check {
  return async ({ list, allows }) => {
    const asked = await list(pods, { slim: slimPod });
    // Other checks say already that pods cannot be read.
    if (asked.kind === 'unknown') return [];
    const present = asked.value.filter((pod) => !isFinished(pod));
    const running = Map.groupBy(present, ({ metadata }) => ownComponentOf(metadata));
    running.delete(undefined);
    if (running.size === 0) return [];
    const components = await load();
    const found = await Promise.all(
      components.map(
        async (each) => await componentFindings(each, running.get(each.component) ?? [], allows),
      ),
    );
    return found.flat();
  };
}

async function componentFindings(
  rights: ComponentRights,
  running: readonly Pod[],
  allows: Asking['allows'],
): Promise<FoundBy[]> {
  const accounts = new Map(
    running.map(({ metadata: { namespace = '' }, spec = {} }) => {
      const name = accountOf(spec) ?? 'default';
      return [`${namespace}/${name}`, { namespace, name }];
    }),
  );
  const found = await Promise.all(
    [...accounts.values()].map(async (account) => {
      const needed = accessesIn(rights, account.namespace);
      const lacked = await lackedBy(account, needed, allows);
      return accountFindings(account, needed, lacked, rights);
    }),
  );
  return found.flat();
}

/** Resolves with those of the accesses that the ServiceAccount does not have. */
export async function lackedBy(
  { namespace, name }: Account,
  accesses: readonly AccessQuestion[],
  allows: Asking['allows'],
): Promise<ReadResult<readonly AccessQuestion[]>> {
  const user = `system:serviceaccount:${namespace}:${name}`;
  const lacked: AccessQuestion[] = [];
  const answers = await Promise.all(accesses.map(async (access) => await allows(user, access)));
  for (const [index, access] of accesses.entries()) {
    const asked = answers[index];
    if (asked?.kind === 'unknown') return asked;
    if (asked?.value === false) lacked.push(access);
  }
  return answer(lacked);
}

function accountFindings(
  { namespace, name }: Account,
  needed: readonly AccessQuestion[],
  lacked: ReadResult<readonly AccessQuestion[]>,
  { component, command, namespace: usual }: ComponentRights,
): FoundBy[] {
  const object = `ServiceAccount ${namespace}/${name}`;
  if (lacked.kind === 'unknown')
    return [{ state: 'unknown', object, message: `whether it has its rights: ${lacked.why}` }];
  const missing = lacked.value.map(describeAccess);
  if (missing.length === 0) return [];
  // Each user may ask for some paths by default.
  const kept = needed.filter(
    (access) => access.path === undefined && !lacked.value.includes(access),
  );
  // Whoever may create a pod may give it the labels of a component. Only administrators create pods in its usual namespace.
  if (kept.length === 0 && namespace !== usual)
    return [
      {
        state: 'warning',
        object,
        message: `a pod with the labels of ${component} runs with it, and it has none of the rights of this component`,
        cure: `apply what \`${command}\` prints, or find out what the pod is`,
      },
    ];
  return [
    {
      state: 'blocker',
      object,
      message: `it lacks ${counted(missing.length, 'right')} that this release needs: ${listed(missing, MOST_NAMED)}`,
      cure: `apply what \`${command}\` prints`,
    },
  ];
}

function describeAccess({
  verb,
  resource,
  subresource,
  name,
  namespace,
  path,
}: AccessQuestion): string {
  if (path !== undefined) return `${verb} ${path}`;
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  const which = name === undefined ? '' : ` ${name}`;
  return `${verb} ${what}${which}${namespace === undefined ? '' : ` in ${namespace}`}`;
}

/** Returns every access that the component needs if it runs in this namespace. */
export function accessesIn(
  { manifests, account, namespace: usual }: ComponentRights,
  present: string,
): AccessQuestion[] {
  const roles = manifests.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role') as Role[];
  return manifests.flatMap((manifest) => {
    const { kind, metadata, roleRef, subjects = [] } = manifest as Binding;
    if (kind !== 'ClusterRoleBinding' && kind !== 'RoleBinding') return [];
    if (!subjects.some((each) => each.kind === 'ServiceAccount' && each.name === account))
      return [];
    const bound = kind === 'RoleBinding' ? metadata.namespace : undefined;
    const role = roles.find(
      (each) =>
        each.kind === roleRef?.kind &&
        each.metadata.name === roleRef?.name &&
        (each.kind === 'ClusterRole' || each.metadata.namespace === bound),
    );
    return (role?.rules ?? []).flatMap((rule) =>
      accessesOf(rule, bound === usual ? present : bound),
    );
  });
}

function accessesOf(rule: RightsRule, namespace: string | undefined): AccessQuestion[] {
  const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [], verbs } = rule;
  const paths = nonResourceURLs.flatMap((path) => verbs.map((verb) => ({ verb, path })));
  const names = resourceNames.length > 0 ? resourceNames : [undefined];
  const objects = verbs.flatMap((verb) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((each) => {
        const [resource = '', subresource] = each.split('/');
        return names.map(
          (name): AccessQuestion => ({
            verb,
            group,
            resource,
            ...(subresource !== undefined && { subresource }),
            ...(name !== undefined && { name }),
            ...(namespace !== undefined && { namespace }),
          }),
        );
      }),
    ),
  );
  return [...paths, ...objects];
}
