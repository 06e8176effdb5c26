/** Computes the names that identify a plan among the plans of all dialects. */

interface NamedPlan {
  /** The name of the dialect. */
  readonly dialect: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/**
 * Returns `<dialect>/<namespace>/<name>`, or `<dialect>/<name>`. Commands and the field `status.covers` of an
 * UpgradePolicy use this form.
 */
export function planReference({ dialect, namespace, name }: NamedPlan): string {
  return [dialect, namespace, name].filter((part) => part !== undefined).join('/');
}

/** Returns the name of the plan with this key for the parts of this process that serve several dialects. */
export function titleOf({ name }: { readonly name: string }, key: string): string {
  return `${name}/${key}`;
}
