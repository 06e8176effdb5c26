/** Owns what the command line of a running k0s tells about where it keeps its things. */

export interface ServiceArguments {
  readonly role: 'controller' | 'worker';
  /** As given: it may be relative to the process's working directory. */
  readonly statusSocket?: string;
  /** As given. */
  readonly dataDirectory?: string;
  /** Name that the kubelet was told to register under. */
  readonly hostnameOverride?: string;
}

const ROLES = ['controller', 'worker'] as const;
const DATA_DIRECTORY = ['--data-dir', '-d'];

/** Undefined where this is no `<program> controller|worker …`, run directly or as a script by its interpreter. */
export function readServiceArguments(argv: readonly string[]): ServiceArguments | undefined {
  const at = [1, 2].find((index) => ROLES.some((role) => role === argv[index]));
  if (at === undefined) return undefined;
  const role = argv[at] === 'worker' ? 'worker' : 'controller';
  const rest = argv.slice(at + 1);
  const statusSocket = valueOf(rest, ['--status-socket']);
  const dataDirectory = valueOf(rest, DATA_DIRECTORY);
  const hostnameOverride = valueOf(words(valueOf(rest, ['--kubelet-extra-args']) ?? ''), ['--hostname-override']);
  return {
    role,
    ...(statusSocket !== undefined && { statusSocket }),
    ...(dataDirectory !== undefined && { dataDirectory }),
    ...(hostnameOverride !== undefined && { hostnameOverride }),
  };
}

/** The last one wins, in either form: `--flag value` and `--flag=value`; an empty value is none. */
function valueOf(argv: readonly string[], names: readonly string[]): string | undefined {
  const values = argv.flatMap((word, index) => {
    const name = names.find((candidate) => word === candidate || word.startsWith(`${candidate}=`));
    if (name === undefined) return [];
    return [word === name ? (argv[index + 1] ?? '') : word.slice(name.length + 1)];
  });
  return values.at(-1) || undefined;
}

/** Arguments within one argument; quotes around a word are for whoever wrote the unit file. */
function words(text: string): string[] {
  return [...text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word.replaceAll(/["']/g, ''));
}
