/** The table of scenes with Plans of k0s, on a real API server. */
import { K0S } from '../dialects/clusters/k0s.ts';
import { playTableOnRealServer } from './scenes/play-table.ts';

playTableOnRealServer(K0S);
