/** Writes the flags of a connection for a command that a person copies. kubectl and refit have the same flags. */
import type { ClusterFlags } from '../../kube/config/kubeconfig.ts';
import { shellWord } from '../../util/shell-word.ts';

/** Returns the flags with a space before each; empty if the user has given none. */
export function connectionWords({ kubeconfig, context, as, asGroup = [] }: ClusterFlags): string {
  const pairs: readonly (readonly [name: string, value: string | undefined])[] = [
    ['--kubeconfig', kubeconfig],
    ['--context', context],
    ['--as', as],
    ...asGroup.map((group) => ['--as-group', group] as const),
  ];
  return pairs
    .map(([name, value]) => (value === undefined ? '' : ` ${name} ${shellWord(value)}`))
    .join('');
}
