/** Builds the command tree and the help of `refit` from a list of commands, and runs one command line. */
import { type Argument, Command, CommanderError, type Option } from 'commander';
import type { Clock } from '../util/clock.ts';
import { RefitError } from '../util/errors.ts';
import type { Output } from './output.ts';
import { VERSION } from './version.ts';

export interface CommandCall {
  /** The argument of the command, if it was given. */
  readonly argument?: string | undefined;
  /** All arguments of a command whose argument may be repeated. */
  readonly values?: readonly string[];
  readonly abort: AbortSignal;
  readonly write: (text: string) => void;
  /** The output to which the command writes; by default, standard output. */
  readonly output?: Output;
  /** The clock of the command; by default, the clock of the system. */
  readonly clock?: Clock;
}

/** `Call` is what the command needs of its call. */
export interface CommandSpec<Call extends CommandCall = CommandCall> {
  readonly name: string;
  readonly summary: string;
  readonly argument?: Argument;
  readonly options?: readonly Option[];
  readonly notes?: string;
  readonly commands?: readonly CommandSpec<Call>[];
  /** The title above the command in the help; absent for a command inside of another one. */
  readonly group?: string;
  /**
   * Runs the command. Resolves with the exit code, or with undefined for 0. A group, and a command that parses its own options, have no
   * such function.
   */
  readonly run?: (flags: never, call: Call) => Promise<number | void>;
}

/**
 * Runs one command line. `args` contains neither `node` nor the path of the script. Resolves with the exit code.
 * Rejects with REFIT_USAGE if the command line is wrong.
 */
export async function runProgram(
  args: readonly string[],
  commands: readonly CommandSpec[],
  call: CommandCall,
) {
  let exitCode = 0;
  const program = new Command('refit')
    .description('Upgrades the nodes of a running Kubernetes cluster in place.')
    .version(VERSION, '-V, --version', 'print the version')
    .exitOverride()
    // An option after the name of a command belongs to that command, even if its group has an option of the same name.
    .enablePositionalOptions()
    .configureOutput({ writeOut: call.write, outputError: () => undefined })
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 failed, 2 usage, 3 unreachable, 4 denied, 130 interrupted.',
    );
  const end = (code: number): void => {
    exitCode = code;
  };
  for (const spec of commands) addCommand(program, spec, call, end);
  const helpGroup = commands.at(-1)?.group;
  if (helpGroup !== undefined)
    program.addHelpCommand(
      new Command('help').argument('[command]').description(HELP).helpGroup(helpGroup),
    );
  try {
    await program.parseAsync(unknownIn(args, commands) ?? args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help is not an error. Everything else that the parser throws is a usage error.
    if (error.exitCode === 0) return 0;
    if (error.code === 'commander.help')
      throw new RefitError('REFIT_USAGE', 'a command is missing', { cause: error });
    const hint = hintAbout(error.code, args, commands);
    throw new RefitError('REFIT_USAGE', error.message.replace(/^error: /, ''), {
      ...(hint !== undefined && { hint }),
      cause: error,
    });
  }
}

const HELP = 'Shows the help of a command.';

/** Commands of kubectl that people try out of habit, each with the advice what to run instead. */
const MEANT = new Map([
  ['get', 'run `refit status` for plans and nodes, or `kubectl get plans,noderollouts -A`'],
  ['describe', 'run `refit why` for a plan, or `refit why NODE` for one node'],
  ['apply', 'run `kubectl apply -f FILE`; `refit validate FILE` checks the file before'],
  ['delete', 'run `refit abort` to stop a plan, or `kubectl delete` to remove it'],
  ['rollout', 'run `refit status -w` to follow a plan, or `refit pause` and `refit resume`'],
  ['cordon', 'run `refit hold NODE` to keep plans away from a node, or `kubectl cordon NODE`'],
  ['drain', 'Refit drains nodes itself; run `refit preview` to see what would block a drain'],
]);

/** Returns what would be right; undefined if the message says it. */
function hintAbout(
  code: string,
  args: readonly string[],
  commands: readonly CommandSpec[],
): string | undefined {
  if (code === 'commander.unknownCommand') return hintFor(args, commands);
  if (code === 'commander.missingArgument') return hintForArgument(args, commands);
  return undefined;
}

/** Returns the form of the command that lacks its argument, and what the argument is. */
function hintForArgument(
  args: readonly string[],
  commands: readonly CommandSpec[],
): string | undefined {
  const path: string[] = [];
  let inside = commands;
  let argument: Argument | undefined;
  for (const word of args) {
    const found = inside.find(({ name }) => name === word);
    if (found === undefined) continue;
    path.push(word);
    ({ argument } = found);
    inside = found.commands ?? [];
  }
  if (argument === undefined) return undefined;
  return `write refit ${path.join(' ')} <${argument.name()}>: ${argument.description}`;
}

/** Returns what would be right in place of the first word that is no command: the commands of its group, if it has one. */
function hintFor(args: readonly string[], commands: readonly CommandSpec[]): string {
  const words = unknownIn(args, commands) ?? args;
  const groups = words.slice(0, -1);
  if (groups.length === 0) return MEANT.get(words[0] ?? '') ?? 'run `refit --help`';
  const inside = groups.reduce(
    (known, word) => known.find(({ name }) => name === word)?.commands ?? [],
    commands,
  );
  return `refit ${groups.join(' ')} takes one of: ${inside.map(({ name }) => name).join(', ')}`;
}

/**
 * Returns the words up to and including the first word that is not a command; undefined if all commands exist. The
 * parser gets only these words. If a `--help` followed the unknown word, the parser would print the help of the group
 * and report success.
 */
function unknownIn(args: readonly string[], commands: readonly CommandSpec[]) {
  const words: string[] = [];
  let known = commands;
  for (const word of args) {
    if (word.startsWith('-')) return undefined;
    if (word === 'help') continue;
    words.push(word);
    const named = known.find(({ name }) => name === word);
    if (!named) return words;
    // All further words are arguments of this command.
    if (named.argument || !named.commands) return undefined;
    known = named.commands;
  }
  return undefined;
}

function addCommand(
  parent: Command,
  spec: CommandSpec,
  call: CommandCall,
  end: (code: number) => void,
): void {
  const { name, summary, argument, options = [], notes, commands = [], group, run } = spec;
  const command = parent.command(name).description(summary);
  if (group !== undefined) command.helpGroup(group);
  if (argument) command.addArgument(argument);
  for (const option of options) command.addOption(option);
  if (notes !== undefined) command.addHelpText('after', `\n${notes}`);
  for (const each of commands) addCommand(command, each, call, end);
  if (commands.length > 0) command.enablePositionalOptions();
  if (!run) return;
  command.action(async (...given: unknown[]) => {
    const argument = given.find((each) => typeof each === 'string');
    const values = given.find((each): each is string[] => Array.isArray(each)) ?? [];
    assertFilled(command, argument, values);
    end((await run(command.opts<never>(), { ...call, argument, values })) ?? 0);
  });
}

/**
 * Throws REFIT_USAGE if an option or an argument has an empty value. A script whose variable is not set passes such a value. If it were
 * ignored, the command could choose another plan than the user wants.
 */
function assertFilled(
  command: Command,
  argument: string | undefined,
  values: readonly string[],
): void {
  for (const option of command.options) {
    const given: unknown = command.getOptionValue(option.attributeName());
    const isGiven = command.getOptionValueSource(option.attributeName()) === 'cli';
    if (!isGiven || ![given].flat().some(isBlank)) continue;
    const advice = option.mandatory ? FILL_IN : FILL_IN_OR_OMIT;
    throw new RefitError('REFIT_USAGE', `${option.long ?? option.flags} is empty: ${advice}`);
  }
  const [first] = command.registeredArguments;
  if (first === undefined || ![argument, ...values].some(isBlank)) return;
  const advice = first.required ? FILL_IN : FILL_IN_OR_OMIT;
  throw new RefitError('REFIT_USAGE', `the argument ${first.name()} is empty: ${advice}`);
}

const FILL_IN = 'give it a value';
const FILL_IN_OR_OMIT = `${FILL_IN}, or leave it out`;

function isBlank(value: unknown): boolean {
  return typeof value === 'string' && value.trim() === '';
}
