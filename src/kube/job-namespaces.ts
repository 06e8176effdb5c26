/**
 * Says in which namespaces Refit may create Jobs whose pods somebody else wrote, such as the author of a policy. The
 * right to create Jobs that Refit has for another reason must never become a right of such an author.
 */

/** The namespaces that the administrator has listed for such Jobs, without those in which no such Job may run. */
export interface JobNamespaces {
  /** Returns the reason why no such Job may run in the namespace, as a clause; undefined if Jobs may run there. */
  refusalOf(namespace: string): string | undefined;
}

/** The namespace of deploy/rbac-hooks.yaml. It is the whole list if the administrator names no other. */
const DEFAULT_NAMESPACES: readonly string[] = ['refit-hooks'];

/**
 * The namespaces in which Refit, or the cluster itself, has rights for another reason. `test/repo/rights-page.test.ts`
 * compares this list with the role files.
 */
export const RESERVED_NAMESPACES: readonly string[] = [
  'default',
  'k0s-autopilot',
  'kube-node-lease',
  'kube-public',
  'kube-system',
  'refit-system',
  'system-upgrade',
];

/** Matches the name of a namespace (RFC 1123). */
const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

interface JobNamespaceParts {
  /** The namespaces that the administrator has listed; undefined if the administrator has given no list. */
  readonly listed: readonly string[] | undefined;
  /** Further namespaces in which this process has rights for another reason, such as its own. */
  readonly reserved: readonly string[];
}

export function jobNamespaces({ listed, reserved }: JobNamespaceParts): JobNamespaces {
  const allowed = listed ?? DEFAULT_NAMESPACES;
  return {
    refusalOf(namespace) {
      const fault = reservationOf(namespace, reserved);
      if (fault !== undefined || allowed.includes(namespace)) return fault;
      const known = allowed.length === 0 ? 'no namespace' : `only ${allowed.join(', ')}`;
      return `the list of namespaces for Jobs of this controller (--job-namespaces) has ${known}`;
    },
  };
}

/** The rule of a command that knows no controller. It refuses only what every controller refuses. */
export const EVERY_CONTROLLER: JobNamespaces = { refusalOf: (name) => reservationOf(name, []) };

/** Returns true if every controller without a list of its own allows the namespace. */
export function isAllowedByDefault(namespace: string): boolean {
  return DEFAULT_NAMESPACES.includes(namespace);
}

function reservationOf(namespace: string, reserved: readonly string[]): string | undefined {
  return RESERVED_NAMESPACES.includes(namespace) || reserved.includes(namespace)
    ? 'Refit or the cluster has other rights in this namespace'
    : undefined;
}

/**
 * Returns the names in a list that an administrator wrote, separated by commas. If a name cannot be in the list,
 * returns the fault as a clause instead.
 */
export function listedNamespaces(
  text: string,
  reserved: readonly string[] = [],
): readonly string[] | string {
  const names = text.split(',').map((name) => name.trim());
  const given = names.filter((name) => name !== '');
  for (const name of given) {
    const fault = NAME.test(name) ? reservationOf(name, reserved) : 'it is no name of a namespace';
    if (fault !== undefined)
      return `the namespace ${JSON.stringify(name)} cannot be listed: ${fault}`;
  }
  return given;
}
