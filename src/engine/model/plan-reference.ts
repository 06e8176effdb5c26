/** Names a plan among the plans of all dialects. */

interface NamedPlan {
  /** The name of the dialect. */
  readonly dialect: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** Returns `<dialect>/<namespace>/<name>`, or `<dialect>/<name>`. `status.covers` of an UpgradePolicy and commands have this form. */
export function planReference({ dialect, namespace, name }: NamedPlan): string {
  return [dialect, namespace, name].filter((part) => part !== undefined).join('/');
}

/** Returns the name under which the parts of this process know the plan with the key. */
export function titleOf({ name }: { readonly name: string }, key: string): string {
  return `${name}/${key}`;
}
