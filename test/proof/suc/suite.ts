/** Runs the original's own test suite, whose specs deploy the controller that they test as a pod. */
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../../../tools/controlplane/run.ts';
import { OPERATOR } from '../machines/namespaces.ts';

/** What Ginkgo reports about a spec. The report has many more specs and members. */
interface SpecReport {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
  /** Nanoseconds. */
  readonly RunTime: number;
  readonly Failure?: {
    readonly Message: string;
    readonly Location?: { readonly FileName: string; readonly LineNumber: number };
  };
}

export interface Spec {
  readonly name: string;
  readonly passed: boolean;
  /** Such as `passed`, `failed`, `timedout` or `skipped`. */
  readonly state: string;
  readonly seconds: number;
  /** Why the spec failed, and where. Empty if it passed. */
  readonly reason: string;
}

export interface SuiteOptions {
  /** The program of the suite. */
  readonly suite: string;
  readonly kubeconfig: string;
  /** The image of the controller. */
  readonly image: string;
  /** A folder for temporary files. */
  readonly directory: string;
  /** The folder for the log and the report, whose names begin with `name`. */
  readonly logs: string;
  readonly name: string;
}

/** The name of the operator's machine for the suite, which serves channels at the address of its host name. */
const HOST = 'operator';
/** Gives the suite its own host name, which the hosts file in the first argument resolves. */
const APART = `hostname ${HOST}
mount --bind "$1" /etc/hosts
log=$2
shift 2
exec "$@" >"$log" 2>&1`;
/** The specs mostly wait. They take a quarter of an hour if none fails. */
const TIMEOUT = '40m';

export async function runSuite(options: SuiteOptions): Promise<Spec[]> {
  const { suite, kubeconfig, image, directory, logs, name } = options;
  const hosts = join(directory, 'hosts');
  await writeFile(hosts, `127.0.0.1 localhost\n${OPERATOR} ${HOST}\n`);
  const log = join(logs, `${name}.log`);
  const report = join(logs, `${name}.json`);
  const words = [
    suite,
    '--provider=local',
    `--kubeconfig=${kubeconfig}`,
    '--ginkgo.v',
    '--ginkgo.no-color',
    // The order of the specs is the same for both controllers.
    '--ginkgo.seed=1',
    `--ginkgo.timeout=${TIMEOUT}`,
    `--ginkgo.json-report=${report}`,
  ];
  const { stderr } = await run(
    'unshare',
    ['--uts', '--mount', 'sh', '-ec', APART, 'sh', hosts, log, ...words],
    { environment: { SYSTEM_UPGRADE_CONTROLLER_IMAGE: image, TMPDIR: directory }, cwd: directory },
  );
  if (!existsSync(report)) {
    const said = existsSync(log) ? await readFile(log, 'utf8') : stderr;
    throw new Error(`the suite wrote no report: ${said.slice(-1000)}`);
  }
  const suites = JSON.parse(await readFile(report, 'utf8')) as { SpecReports: SpecReport[] }[];
  return suites
    .flatMap(({ SpecReports }) => SpecReports)
    .filter(({ LeafNodeType }) => LeafNodeType === 'It')
    .map(specOf);
}

function specOf(report: SpecReport): Spec {
  const { ContainerHierarchyTexts, LeafNodeText, State, RunTime, Failure } = report;
  const passed = State === 'passed';
  const place = Failure?.Location;
  const where =
    place === undefined ? '' : `${place.FileName.split('/').at(-1)}:${place.LineNumber}: `;
  return {
    name: [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(' › '),
    passed,
    state: State,
    seconds: Math.round(RunTime / 1e9),
    reason: passed ? '' : `${where}${Failure?.Message ?? State}`.replaceAll(/\s+/g, ' '),
  };
}
