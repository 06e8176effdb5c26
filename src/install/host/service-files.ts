/** The files by which systemd and OpenRC run the agent: those of deploy/host, with the command that fits this host. */
import { deployFile } from '../deploy-files.ts';

export const SERVICE = 'refit-agent';

/** `command`: the program and its arguments. */
export function systemdUnit(command: readonly string[]): string {
  // systemd expands both in arguments.
  const words = command.map((word) => JSON.stringify(word).replaceAll('%', '%%').replaceAll('$', '$$$$'));
  return withValue(deployFile('host/refit-agent.service'), 'ExecStart', words.join(' '));
}

export function openRcScript([program = '', ...args]: readonly string[]): string {
  const script = withValue(deployFile('host/refit-agent.initd'), 'command', shellWord(program));
  return withValue(script, 'command_args', shellWord(args.map(shellWord).join(' ')));
}

function withValue(text: string, name: string, value: string): string {
  return text.replace(new RegExp(`^${name}=.*$`, 'm'), () => `${name}=${value}`);
}

function shellWord(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
