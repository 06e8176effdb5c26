/** Implements `refit completion`: the scripts by which shells complete commands, options and values. */
import type { Option } from 'commander';
import { namesOf } from './named.ts';
import type { CommandSpec } from './program.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

export type Shell = (typeof SHELLS)[number];

interface Completed {
  /** The words of the command, such as `kubeadm plan`; empty for `refit` itself. */
  readonly path: string;
  readonly commands: readonly CommandSpec[];
  readonly values: readonly string[];
  /** True if the argument of the command is the name of a node or plan. */
  readonly isNamed: boolean;
  readonly options: readonly Pick<
    Option,
    'long' | 'short' | 'description' | 'required' | 'argChoices'
  >[];
}

/**
 * The program that kubectl runs to complete `kubectl refit`. It must be in PATH as `kubectl_complete-refit`. kubectl shows
 * nothing if it fails.
 */
export const KUBECTL_COMPLETION = `#!/bin/sh
exec kubectl-refit __complete "$@" 2> /dev/null
`;

/** Returns the script that makes `shell` complete command lines of `refit`. */
export function completionOf(shell: Shell, commands: readonly CommandSpec[]): string {
  const all = [
    { path: '', commands, values: [], isNamed: false, options: [] },
    ...commands.flatMap((spec) => completedOf(spec, '')),
  ];
  if (shell === 'fish') return fish(all);
  return shell === 'bash'
    ? bash(all)
    : `#compdef refit\nautoload -U +X bashcompinit && bashcompinit\n${bash(all)}`;
}

function completedOf(
  { name, argument, commands = [], options = [] }: CommandSpec,
  above: string,
): Completed[] {
  const path = `${above} ${name}`.trim();
  return [
    {
      path,
      commands,
      values: argument?.argChoices ?? [],
      isNamed: namesOf(argument?.name()) !== undefined,
      options,
    },
    ...commands.flatMap((spec) => completedOf(spec, path)),
  ];
}

/**
 * Returns the script for bash, which zsh can run, too. It must not use the names `path` and `words`, because zsh reserves them.
 * If the script offers nothing, the shell completes file names.
 */
function bash(all: readonly Completed[]): string {
  const words = all.map(({ path, commands, values, isNamed, options }) => {
    const names = [
      ...commands.map(({ name }) => name),
      ...values,
      ...options.flatMap(({ long }) => long ?? []),
      '--help',
    ];
    return `    "${path}") offers="${names.join(' ')}" ask="${isNamed ? 'yes' : ''}" ;;`;
  });
  const paths = all.filter(({ path }) => path !== '').map(({ path }) => `"${path}"`);
  const values = all.flatMap(({ path, options }) =>
    options
      .filter(({ required }) => required)
      .flatMap(({ long, short, argChoices = [] }) =>
        [long, short].flatMap((flag) =>
          flag === undefined
            ? []
            : [
                `    "${path} ${flag}") offers="${argChoices.join(' ')}" ask="${namesOf(long) ? 'yes' : ''}" ;;`,
              ],
        ),
      ),
  );
  return `_refit() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" at="" offers="" ask="" found="" word
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
    case "\${at:+$at }$word" in
    ${paths.join('|')}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at" in
${words.join('\n')}
  esac
  case "$at $previous" in
${values.join('\n')}
  esac
  if [[ -n "$ask" && "$current" != -* ]]; then
    while IFS=$'\\t' read -r word _; do
      [[ "$word" == :* ]] || found="$found $word"
    done < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:$COMP_CWORD}" 2> /dev/null)
    offers="\${found:-$offers}"
  fi
  COMPREPLY=($(compgen -W "$offers" -- "$current"))
}
complete -o default -F _refit refit
`;
}

/** The command by which fish gets the offers. Fish shows the text after a tab as the description of an offer. */
const FISH_NAMES =
  '(refit __complete (commandline -opc)[2..] (commandline -ct) 2> /dev/null | string match -v -- ":*")';

function fish(all: readonly Completed[]): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "\\'")}'`;
  return `${all
    .flatMap(({ path, commands, values, isNamed, options }) => {
      const seen =
        path === ''
          ? '__fish_use_subcommand'
          : `__fish_seen_subcommand_from ${path.split(' ').at(-1)}`;
      const base = `complete -c refit -n ${quoted(seen)}`;
      return [
        ...commands.map(({ name, summary }) => `${base} -f -a ${name} -d ${quoted(summary)}`),
        ...(values.length > 0 ? [`${base} -f -a ${quoted(values.join(' '))}`] : []),
        ...(isNamed ? [`${base} -f -a ${quoted(FISH_NAMES)}`] : []),
        ...options.map(({ long = '', short, description, required, argChoices = [] }) =>
          [
            `${base} -l ${long.slice(2)}`,
            ...(short === undefined ? [] : [`-s ${short.slice(1)}`]),
            ...(required ? ['-r'] : []),
            ...(namesOf(long) === undefined ? [] : [`-f -a ${quoted(FISH_NAMES)}`]),
            ...(argChoices.length > 0 ? [`-f -a ${quoted(argChoices.join(' '))}`] : []),
            `-d ${quoted(description)}`,
          ].join(' '),
        ),
      ];
    })
    .join('\n')}\n`;
}
