/** Explores the larger plans of Cluster API, which take too long for the first tier. */
import { LARGE_CAPI_CONFIGURATIONS } from '../capi/configurations.ts';
import { testCapiConfigurations } from '../capi/explored-capi.ts';

testCapiConfigurations(LARGE_CAPI_CONFIGURATIONS);
