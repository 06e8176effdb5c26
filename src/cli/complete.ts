/**
 * Implements `refit __complete`, which prints the words that may come next on a command line. They include the names of
 * nodes and plans in the cluster. The scripts of `refit completion` call it, and kubectl calls it for `kubectl refit`.
 * The output has the form that kubectl reads.
 */
import type { Option } from 'commander';
import { nodeRollouts } from '../api/kinds.ts';
import { loadChosenCluster } from '../kube/config/kubeconfig.ts';
import { type KubeObject, nodes, type Resource } from '../kube/resources.ts';
import { createClient } from '../kube/transport/http-client.ts';
import { controlNodes } from '../signal/names.ts';
import { type NamesOf, namesOf } from './named.ts';
import type { CommandSpec } from './program.ts';

/** The maximum time in milliseconds for which a user who pressed Tab waits for names from the cluster. */
const PATIENCE_MS = 2_000;
/** The maximum number of names to offer, because nobody reads a longer list. */
const MOST_NAMES = 500;
/**
 * Matches names with the characters that Kubernetes allows in names. Other names are not offered, because a wrong server could send
 * characters that a shell expands.
 */
const SAFE = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/;
/**
 * The last line of the output. FILES tells kubectl to complete file names as well. NO_FILES tells kubectl to offer only
 * the lines before this line.
 */
const FILES = ':0';
const NO_FILES = ':4';

interface Offer {
  readonly word: string;
  readonly meaning?: string;
}

interface Offers {
  readonly words: readonly Offer[];
  readonly names?: NamesOf | undefined;
  /** True if a file may come next. */
  readonly files?: boolean;
}

/**
 * Resolves with the completions of the last word of `line`, which may be empty. `line` is a command line without
 * `refit`. Never rejects.
 */
export async function complete(
  line: readonly string[],
  commands: readonly CommandSpec[],
  abort: AbortSignal,
): Promise<string> {
  const before = line.slice(0, -1);
  const current = line.at(-1) ?? '';
  const { words, names, files = false } = offersAfter(before, current, commands);
  const found = names === undefined ? [] : await namesIn(names, before, abort);
  const lines = [...words, ...found.map((word): Offer => ({ word }))]
    .filter(({ word }) => word.startsWith(current))
    .map(({ word, meaning }) => (meaning === undefined ? word : `${word}\t${meaning}`));
  return `${[...lines, files ? FILES : NO_FILES].join('\n')}\n`;
}

/** Returns what may follow the words in `before`. `current` is the beginning of the next word. */
function offersAfter(
  before: readonly string[],
  current: string,
  commands: readonly CommandSpec[],
): Offers {
  let known = commands;
  let spec: CommandSpec | undefined;
  let waiting: Option | undefined;
  for (const word of before) {
    if (waiting) waiting = undefined;
    else if (word.startsWith('-')) waiting = takesValue(spec, word);
    else {
      const named = known.find(({ name }) => name === word);
      if (named) {
        spec = named;
        known = named.commands ?? [];
      }
    }
  }
  if (waiting) return valuesOf(waiting.argChoices, namesOf(waiting.long));
  if (current.startsWith('-')) {
    const options = (spec?.options ?? []).flatMap(({ long, description }): Offer[] =>
      typeof long === 'string' ? [{ word: long, meaning: description }] : [],
    );
    return { words: [...options, { word: '--help', meaning: 'display help for command' }] };
  }
  if (known.length > 0)
    return { words: known.map(({ name, summary }) => ({ word: name, meaning: summary })) };
  const { argument } = spec ?? {};
  return argument ? valuesOf(argument.argChoices, namesOf(argument.name())) : { words: [] };
}

/** Returns the option that `word` names if its value must follow as the next word; otherwise undefined. */
function takesValue(spec: CommandSpec | undefined, word: string): Option | undefined {
  const option = spec?.options?.find(({ long, short }) => word === long || word === short);
  return option?.required === true ? option : undefined;
}

function valuesOf(choices: readonly string[] | undefined, names: NamesOf | undefined): Offers {
  return {
    words: (choices ?? []).map((word) => ({ word })),
    names,
    files: choices === undefined && names === undefined,
  };
}

/**
 * Resolves with names from the cluster that the options in `before` select. Resolves with an empty list if the API
 * server does not answer in time.
 */
async function namesIn(
  what: NamesOf,
  before: readonly string[],
  abort: AbortSignal,
): Promise<string[]> {
  const soon = AbortSignal.any([abort, AbortSignal.timeout(PATIENCE_MS)]);
  try {
    const flags = {
      kubeconfig: flagIn(before, '--kubeconfig'),
      context: flagIn(before, '--context'),
    };
    const config = await loadChosenCluster(flags);
    using client = createClient(config, { userAgent: 'refit-completion' });
    const list = async <T extends KubeObject>(resource: Resource<T>): Promise<readonly T[]> => {
      const options = { abort: soon, limit: MOST_NAMES, resourceVersion: '0' };
      return (await client.list(resource, options).catch(() => ({ items: [] }))).items;
    };
    const names =
      what === 'plans'
        ? plansIn(
            (await list(nodeRollouts)).flatMap(({ spec, status }) =>
              status?.planDeleted === undefined ? spec.plan : [],
            ),
          )
        : (await Promise.all([list(nodes), list(controlNodes)]))
            .flat()
            .map(({ metadata }) => metadata.name);
    const safe = names.filter((name) => typeof name === 'string' && SAFE.test(name));
    return [...new Set(safe)].toSorted().slice(0, MOST_NAMES);
  } catch {
    return [];
  }
}

interface NamedPlan {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
}

/**
 * Returns for each plan a name that no other plan has: the name of its object alone if that is unique, and otherwise a
 * longer form.
 */
function plansIn(plans: readonly NamedPlan[]): string[] {
  const byName = Map.groupBy(plans, ({ name }) => name);
  return plans.map(({ kind, name, namespace }) =>
    byName.get(name)?.length === 1 ? name : `${namespace ?? kind.toLowerCase()}/${name}`,
  );
}

function flagIn(words: readonly string[], flag: string): string | undefined {
  const at = words.indexOf(flag);
  return at < 0
    ? words.find((word) => word.startsWith(`${flag}=`))?.slice(flag.length + 1)
    : words[at + 1];
}
