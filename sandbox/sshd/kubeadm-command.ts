/**
 * Checks the command lines of the stand-in kubeadm. It accepts the command lines that a real kubeadm accepts, as far as
 * an upgrade needs them.
 */
import { readFileSync, statSync } from 'node:fs';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { parse } from 'yaml';

export interface KubeadmCommand {
  readonly kind: 'apply' | 'node' | 'plan';
  /** True for `phase preflight`. */
  readonly phase: boolean;
  readonly version: string | undefined;
  /** The names of the ignored checks, in lower case. */
  readonly ignored: ReadonlySet<string>;
}

const PREFLIGHT: ParseArgsConfig['options'] = {
  config: { type: 'string' },
  'ignore-preflight-errors': { type: 'string' },
};
const WHOLE: ParseArgsConfig['options'] = {
  ...PREFLIGHT,
  'certificate-renewal': { type: 'string' },
  'etcd-upgrade': { type: 'string' },
  patches: { type: 'string' },
};
const PLAN: ParseArgsConfig['options'] = { ...PREFLIGHT, output: { type: 'string', short: 'o' } };
const YES = { yes: { type: 'boolean', short: 'y' } } as const;
/** The flags that kubeadm allows together with --config. */
const BESIDE_CONFIG = ['config', 'ignore-preflight-errors', 'output', 'yes'];

/** @throws Error if kubeadm refuses the command line */
export function parseKubeadm(args: readonly string[]): KubeadmCommand {
  const [verb, kind, ...rest] = args;
  if (verb !== 'upgrade' || (kind !== 'apply' && kind !== 'node' && kind !== 'plan'))
    throw new Error(`unknown command ${args.join(' ')}`);
  const phase = rest[0] === 'phase';
  if (phase && rest[1] !== 'preflight') throw new Error(`invalid subcommand "${rest[1]}"`);
  const parsed = parseArgs({
    args: phase ? rest.slice(2) : rest,
    options:
      kind === 'plan' ? PLAN : { ...(phase ? PREFLIGHT : WHOLE), ...(kind === 'apply' ? YES : {}) },
    allowPositionals: kind !== 'node',
  });
  const { positionals } = parsed;
  const values: Readonly<Record<string, string | boolean | undefined>> = parsed.values;
  const { config, patches } = values;
  const mixed = Object.keys(values).filter((name) => !BESIDE_CONFIG.includes(name));
  if (config !== undefined && mixed.length > 0)
    throw new Error(`can not mix '--config' with arguments [${mixed.join(' ')}]`);
  // Without `--yes`, kubeadm asks a question. Nobody answers it here, so kubeadm fails.
  if (kind === 'apply' && values['yes'] !== true)
    throw new Error("won't proceed; the user didn't answer (Y|y) in order to continue");
  for (const flag of ['certificate-renewal', 'etcd-upgrade'])
    if (!['undefined', 'true', 'false'].includes(String(values[flag])))
      throw new Error(`invalid argument "${String(values[flag])}" for "--${flag}"`);
  if (typeof patches === 'string' && !statSync(patches).isDirectory())
    throw new Error(`${patches} is not a directory`);
  if (typeof config === 'string') {
    const { kind: found } = parse(readFileSync(config, 'utf8')) as { kind?: string };
    if (found !== 'UpgradeConfiguration') throw new Error(`no UpgradeConfiguration in ${config}`);
  }
  const ignored = String(values['ignore-preflight-errors'] ?? '')
    .toLowerCase()
    .split(',');
  if (ignored.includes('all') && ignored.length > 1)
    throw new Error("don't specify individual checks if 'all' is used");
  return { kind, phase, version: positionals[0], ignored: new Set(ignored) };
}
